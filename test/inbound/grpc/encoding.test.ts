import { create, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type CompletionChunk, CompletionChunkSchema, PartDeltaSchema } from "../../../gen/parley/v1/completion_pb.js";
import { deltaChunk, finishChunk } from "../../../src/core/chunks.ts";
import { encode } from "../../../src/inbound/grpc/definition.ts";
import { anyCharacter } from "../../support/any-character.ts";

const usual = (chunk: CompletionChunk): Buffer => Buffer.from(toBinary(CompletionChunkSchema, chunk));
const ours = (chunk: CompletionChunk): Buffer => encode(CompletionChunkSchema, chunk);

describe("a chunk on the wire", () => {
  it("with a piece of text is what the library writes", () => {
    const index = fc.oneof(fc.constant(0), fc.integer({ min: -2, max: 300 }));
    const text = fc.oneof(fc.string({ unit: anyCharacter }), fc.string());
    fc.assert(
      fc.property(index, index, text, (choiceIndex, partIndex, value) => {
        const chunk = deltaChunk({ choiceIndex, partIndex }, { case: "text", value });
        expect(ours(chunk)).toEqual(usual(chunk));
      }),
    );
  });

  it.each([0, 1, 63, 123, 124, 127, 128, 16_379, 16_383, 16_384, 2_097_152, 3_000_000])(
    "may have %i characters of text",
    (length) => {
      const chunk = deltaChunk({ choiceIndex: 1, partIndex: 2 }, { case: "text", value: "a".repeat(length) });
      expect(ours(chunk).equals(usual(chunk))).toBe(true);
    },
  );

  it("with anything else is what the library writes", () => {
    const text = { case: "text", value: "a" } as const;
    const likely = create(PartDeltaSchema, { content: text, logprobs: [{ token: "a", logprob: -1 }] });
    const unknown = create(PartDeltaSchema, { content: text });
    unknown.$unknown = [{ no: 77, wireType: 0, data: new Uint8Array([1]) }];
    const chunks = [
      deltaChunk({ choiceIndex: 0, partIndex: 3 }, { case: "reasoning", value: "a" }),
      deltaChunk({ choiceIndex: 0, partIndex: 3 }, { case: undefined }),
      finishChunk(0, { reason: 1, native: "STOP", details: { "gemini.safety_ratings": "[]" } }),
      ...[likely, unknown].map((value) => create(CompletionChunkSchema, { event: { case: "partDelta", value } })),
    ];
    for (const chunk of chunks) expect(ours(chunk)).toEqual(usual(chunk));
  });
});
