import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { describe, expect, it } from "vitest";
import { CompletionRequestSchema } from "../../gen/parley/v1/completion_pb.js";
import { ListModelsRequestSchema } from "../../gen/parley/v1/model_pb.js";
import { MessageSchema, PartSchema, Role } from "../../gen/parley/v1/message_pb.js";
import {
  readUnrecognized,
  requireKnownFields,
  unknownFields,
  writeUnrecognized,
} from "../../src/inbound/unknown-fields.ts";

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

  it("are looked for in a part as long as there is room for their names", () => {
    const request = received(...Array.from({ length: 19 }, (_, index) => 100 + index));
    expect(unknownFields(request).slice(19)).toEqual(["messages[0].101"]);
    let looked = 0;
    const full = received(...Array.from({ length: 20 }, (_, index) => 100 + index));
    const { messages } = full;
    Object.defineProperty(full, "messages", { get: () => (looked++, messages) });
    unknownFields(full);
    expect(looked).toBe(0);
  });

  it("are named up to twenty times", () => {
    const request = received(...Array.from({ length: 1_000 }, (_, index) => 100 + index));
    expect(unknownFields(request)).toHaveLength(20);
  });

  it("refuse a request whose answer cannot list them", () => {
    const request = create(ListModelsRequestSchema, { pageSize: 1 });
    expect(() => requireKnownFields(request, ListModelsRequestSchema)).not.toThrow();
    request.$unknown = [unknown(100)];
    expect(() => requireKnownFields(request, ListModelsRequestSchema)).toThrow("100: is not known to this version.");
  });

  it("are none in a request of this version", () => {
    expect(unknownFields(create(CompletionRequestSchema, { model: "a", tools: [{}] }))).toEqual([]);
  });
});

describe("names of unknown fields on their way from a front to its core", () => {
  const through = (names: readonly string[]): string[] => readUnrecognized(writeUnrecognized(names));
  /** What a core allows for the headers of a call; the rest of them take 250 bytes. */
  const MOST = 768;

  it("arrive as they are", () => {
    const names = ["extra", "messages[0].parts[1].100", 'a "quoted" one', "ä"];
    expect(through(names)).toEqual(names);
    expect(writeUnrecognized([])).toBeUndefined();
    expect(writeUnrecognized(undefined)).toBeUndefined();
  });

  it.each([
    ["many", Array.from({ length: 64 }, (_, index) => `field_${index}_${"x".repeat(56)}`)],
    ["long ones", ["x".repeat(5_000), "y".repeat(5_000)]],
    ["of three bytes a character", Array.from({ length: 64 }, () => "語".repeat(64))],
    ["with a half of a character at the cut", [`${"x".repeat(79)}\u{1f600}`]],
    ["of control characters", ["\u0001".repeat(64)]],
  ])("leave some out where there is no room: %s", (_, names) => {
    const header = writeUnrecognized(names)!;
    expect(header.length).toBeLessThanOrEqual(MOST);
    const read = readUnrecognized(header);
    expect(read.length).toBeGreaterThan(0);
    expect(names[0]!.toWellFormed().startsWith(read[0]!.replace(/\ufffd$/, ""))).toBe(true);
  });
});
