import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { describe, expect, it } from "vitest";
import { CompletionRequestSchema } from "../../gen/parley/v1/completion_pb.js";
import { ContentPartSchema, MessageSchema, Role } from "../../gen/parley/v1/message_pb.js";
import { nameUnknownFields } from "../../src/inbound/unknown-fields.ts";

const unknown = (no: number) => ({ no, wireType: WireType.Varint, data: new BinaryWriter().uint32(1).finish() });

function received(...fields: number[]) {
  const part = create(ContentPartSchema, { content: { case: "image", value: { mediaType: "image/png" } } });
  if (part.content.case === "image") part.content.value.$unknown = [unknown(102)];
  const message = create(MessageSchema, { role: Role.USER, content: [part] });
  message.$unknown = [unknown(101)];
  const request = create(CompletionRequestSchema, { model: "a", messages: [message], tools: [{}], stop: ["x"] });
  request.$unknown = fields.map(unknown);
  return fromBinary(CompletionRequestSchema, toBinary(CompletionRequestSchema, request));
}

describe("fields that this version does not know", () => {
  it("are named by path and number, once", () => {
    const request = received(100, 100);
    nameUnknownFields(request);
    expect(request.unrecognizedFields).toEqual(["100", "messages[0].101", "messages[0].content[0].image.102"]);
    nameUnknownFields(request);
    expect(request.unrecognizedFields).toHaveLength(3);
  });

  it("are named up to twenty times", () => {
    const request = received(...Array.from({ length: 1_000 }, (_, index) => 100 + index));
    nameUnknownFields(request);
    expect(request.unrecognizedFields).toHaveLength(20);
  });

  it("are none in a request of this version", () => {
    const request = create(CompletionRequestSchema, { model: "a", unrecognizedFields: ["tools[0].x"] });
    nameUnknownFields(request);
    expect(request.unrecognizedFields).toEqual(["tools[0].x"]);
  });
});
