import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type CompletionChunk,
  CompletionChunkSchema,
  FinishReason,
  PartialImageSchema,
} from "../../gen/parley/v1/completion_pb.js";
import { ImageSchema } from "../../gen/parley/v1/message_pb.js";
import { ChoiceWriter, toChunk, toPart } from "../../src/core/chunks.ts";
import { encode } from "../../src/inbound/grpc/definition.ts";
import { ImageJoiner, splitImages } from "../../src/inbound/image-pieces.ts";

const MIB = 1024 * 1024;

/** A text, images of these sizes with an address between them, and the end. */
function chunksWith(...sizes: readonly number[]): CompletionChunk[] {
  const out: CompletionChunk[] = [];
  const writer = new ChoiceWriter(0);
  const add = (image: Parameters<typeof create<typeof ImageSchema>>[1]): void =>
    writer.whole(toPart({ case: "image", value: create(ImageSchema, image) }, "signature"), out);
  writer.text({ case: "text", value: "Here." }, out);
  for (const [index, size] of sizes.entries()) {
    add({ source: { case: "data", value: Buffer.alloc(size, index + 1) }, mediaType: "image/png" });
    add({ source: { case: "url", value: "https://example.com/a.png" } });
  }
  writer.finish({ reason: FinishReason.STOP, native: "stop" }, out);
  return out;
}

describe("images in pieces", () => {
  it("are chunks below 1 MiB", () => {
    const sent = splitImages(chunksWith(6 * MIB, 1));
    for (const chunk of sent) expect(encode(CompletionChunkSchema, chunk).length).toBeLessThan(MIB);
    expect(sent.filter(({ event }) => event.case === "partDelta")).toHaveLength(1 + 12 + 1);
  });

  it("are the same images when they are joined, however the chunks arrive", () => {
    const size = fc.oneof(fc.nat(4), fc.integer({ min: MIB / 2 - 2, max: MIB / 2 + 2 }), fc.nat(2 * MIB));
    fc.assert(
      fc.property(fc.array(size, { maxLength: 3 }), fc.integer({ min: 1, max: 5 }), (sizes, step) => {
        const chunks = chunksWith(...sizes);
        const sent = splitImages(chunks);
        const joiner = new ImageJoiner();
        const joined: CompletionChunk[] = [];
        for (let at = 0; at < sent.length; at += step) joined.push(...joiner.join(sent.slice(at, at + step)));
        expect(joined.map((chunk) => encode(CompletionChunkSchema, chunk))).toEqual(
          chunks.map((chunk) => encode(CompletionChunkSchema, chunk)),
        );
      }),
      { numRuns: 30 },
    );
  });

  it("in the making are pieces of a fit size, and whole again when they are joined", () => {
    const partial = (index: number, size: number): CompletionChunk =>
      toChunk({
        case: "partialImage",
        value: create(PartialImageSchema, { index, mediaType: "image/png", data: Buffer.alloc(size, index + 1) }),
      });
    const chunks = [partial(0, 3 * MIB), partial(1, 1), ...chunksWith(1)];
    const sent = splitImages(chunks);
    for (const chunk of sent) expect(encode(CompletionChunkSchema, chunk).length).toBeLessThan(MIB);
    expect(sent.filter(({ event }) => event.case === "partialImage")).toHaveLength(6 + 1);
    const joiner = new ImageJoiner();
    const joined = sent.flatMap((chunk) => joiner.join([chunk]));
    expect(joined.map((chunk) => encode(CompletionChunkSchema, chunk))).toEqual(
      chunks.map((chunk) => encode(CompletionChunkSchema, chunk)),
    );
  });

  it("leave chunks without images as they are", () => {
    const chunks = chunksWith();
    expect(splitImages(chunks)).toBe(chunks);
  });
});
