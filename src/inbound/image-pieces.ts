import type { CompletionChunk, PartialImage, PartStart } from "../../gen/parley/v1/completion_pb.js";
import type { Image } from "../../gen/parley/v1/message_pb.js";
import { deltaChunk, startChunk, toChunk } from "../core/chunks.ts";

/*
 * Within a process an image's bytes are in its `part_start`. Over the contract's streams they follow in deltas, because clients
 * receive no message above 4 MiB by default.
 */

/** Most bytes of an image in one chunk. */
const PIECE_BYTES = 512 * 1024;

/** The chunks as they are sent: images' bytes in deltas. */
export function splitImages(chunks: readonly CompletionChunk[]): readonly CompletionChunk[] {
  return chunks.some((chunk) => bytesOfImage(chunk) !== undefined || chunk.event.case === "partialImage")
    ? chunks.flatMap(split)
    : chunks;
}

function split(chunk: CompletionChunk): CompletionChunk[] {
  if (chunk.event.case === "partialImage") return splitPartial(chunk.event.value);
  const bytes = bytesOfImage(chunk);
  if (bytes === undefined) return [chunk];
  const start = chunk.event.value as PartStart;
  const out = [withBytes(start, new Uint8Array())];
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
    const value = bytes.subarray(at, at + PIECE_BYTES);
    out.push(deltaChunk(start, { case: "imageData", value }));
  }
  return out;
}

function splitPartial(image: PartialImage): CompletionChunk[] {
  const out: CompletionChunk[] = [];
  for (let at = 0; at === 0 || at < image.data.length; at += PIECE_BYTES) {
    const [data, hasMore] = [image.data.subarray(at, at + PIECE_BYTES), at + PIECE_BYTES < image.data.length];
    out.push(toChunk({ case: "partialImage", value: { ...image, data, hasMore } }));
  }
  return out;
}

/** Puts the images of one stream together again. */
export class ImageJoiner {
  /** Images whose bytes arrive, by choice and part. */
  readonly #open = new Map<string, { readonly start: PartStart; readonly pieces: Uint8Array[] }>();

  /** Pieces of a picture that is being made. */
  #partial: Uint8Array[] = [];

  /** The chunks as they were before `splitImages`. An image comes when it is complete. */
  join(chunks: readonly CompletionChunk[]): CompletionChunk[] {
    return chunks.flatMap((chunk) => this.#join(chunk));
  }

  #join(chunk: CompletionChunk): CompletionChunk[] {
    const { event } = chunk;
    if (event.case === "partialImage") return this.#joinPartial(event.value);
    if (event.case === "partStart") {
      const bytes = bytesOfImage(chunk);
      if (bytes === undefined) return [chunk];
      this.#open.set(keyOf(event.value), { start: event.value, pieces: [bytes] });
      return [];
    }
    if (event.case === "partDelta" && event.value.content.case === "imageData") {
      this.#open.get(keyOf(event.value))?.pieces.push(event.value.content.value);
      return [];
    }
    if (event.case === "partFinish") {
      const key = keyOf(event.value);
      const image = this.#open.get(key);
      this.#open.delete(key);
      if (image !== undefined) return [withBytes(image.start, Buffer.concat(image.pieces)), chunk];
    }
    return [chunk];
  }

  #joinPartial(image: PartialImage): CompletionChunk[] {
    this.#partial.push(image.data);
    if (image.hasMore) return [];
    const data = Buffer.concat(this.#partial);
    this.#partial = [];
    return [toChunk({ case: "partialImage", value: { ...image, data } })];
  }
}

const keyOf = ({ choiceIndex, partIndex }: Pick<PartStart, "choiceIndex" | "partIndex">): string =>
  `${choiceIndex}:${partIndex}`;

/** The bytes that an image begins with; undefined for other chunks, and for an image by its address. */
function bytesOfImage({ event }: CompletionChunk): Uint8Array | undefined {
  if (event.case !== "partStart" || event.value.part?.kind.case !== "image") return undefined;
  const { source } = event.value.part.kind.value;
  return source.case === "data" ? source.value : undefined;
}

/** The start of an image, with other bytes. */
function withBytes(start: PartStart, value: Uint8Array): CompletionChunk {
  const part = start.part!;
  const image = part.kind.value as Image;
  const kind = { case: "image", value: { ...image, source: { case: "data", value } } } as const;
  return startChunk({ ...start, part: { ...part, kind } });
}
