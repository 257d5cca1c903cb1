import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { describe, expect, it } from "vitest";
import { CompletionRequestSchema } from "../../gen/parley/v1/completion_pb.js";
import { ListModelsRequestSchema } from "../../gen/parley/v1/model_pb.js";
import { MessageSchema, PartSchema, Role } from "../../gen/parley/v1/message_pb.js";
import { requireKnownFields, unknownFields } from "../../src/inbound/unknown-fields.ts";

const unknown = (no: number) => ({ no, wireType: WireType.Varint, data: new BinaryWriter().uint32(1).finish() });

function received(...fields: number[]) {
  const part = create(PartSchema, { kind: { case: "image", value: { mediaType: "image/png" } } });
  if (part.kind.case === "image") part.kind.value.$unknown = [unknown(102)];
  const message = create(MessageSchema, { role: Role.USER, parts: [part] });
  message.$unknown = [unknown(101)];
  const request = create(CompletionRequestSchema, {
    model: "a",
    messages: [message],
    tools: [{}],
    stopSequences: ["x"],
  });
  request.$unknown = fields.map(unknown);
  return fromBinary(CompletionRequestSchema, toBinary(CompletionRequestSchema, request));
}

describe("fields that this version does not know", () => {
  it("are named by path and number, once", () => {
    const request = received(100, 100);
    expect(unknownFields(request)).toEqual(["100", "messages[0].101", "messages[0].parts[0].image.102"]);
  });

  it("are named up to twenty times", () => {
    const request = received(...Array.from({ length: 1_000 }, (_, index) => 100 + index));
    expect(unknownFields(request)).toHaveLength(20);
  });

  it("refuse a request whose answer cannot list them", () => {
    const request = create(ListModelsRequestSchema, { pageSize: 1 });
    expect(() => requireKnownFields(request, ListModelsRequestSchema)).not.toThrow();
    request.$unknown = [unknown(100)];
    expect(() => requireKnownFields(request, ListModelsRequestSchema)).toThrow("100: is not known here.");
  });

  it("are none in a request of this version", () => {
    expect(unknownFields(create(CompletionRequestSchema, { model: "a", tools: [{}] }))).toEqual([]);
  });
});
