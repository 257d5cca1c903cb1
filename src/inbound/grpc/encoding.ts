import { type DescMessage, type Message, toBinary } from "@bufbuild/protobuf";
import { type CompletionChunk, CompletionChunkSchema } from "../../../gen/parley/v1/completion_pb.js";

/** A message's bytes on the wire. */
export function encode(desc: DescMessage, message: Message): Buffer {
  const piece = desc === CompletionChunkSchema ? encodeText(message as CompletionChunk) : undefined;
  if (piece !== undefined) return piece;
  const bytes = toBinary(desc, message);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

// Tags: a field's number and its kind, in one byte each.
const DELTA = (2 << 3) | 2;
const CHOICE_INDEX = 1 << 3;
const TEXT = (2 << 3) | 2;

/**
 * Nearly all chunks of a stream are a piece of text, and the library's encoder, which knows every message, takes longer
 * for one than reading it did. Undefined for any other chunk.
 */
function encodeText({ event, $unknown }: CompletionChunk): Buffer | undefined {
  if (event.case !== "delta" || $unknown !== undefined) return undefined;
  const { choiceIndex, content, logprobs, $unknown: more } = event.value;
  if (content.case !== "text" || logprobs !== undefined || more !== undefined) return undefined;
  // Larger ones would take more than a byte.
  if (choiceIndex < 0 || choiceIndex > 0x7f) return undefined;
  const length = Buffer.byteLength(content.value);
  const index = choiceIndex === 0 ? 0 : 2;
  const delta = index + 1 + sizeOfLength(length) + length;
  const bytes = Buffer.allocUnsafe(1 + sizeOfLength(delta) + delta);
  bytes[0] = DELTA;
  let at = writeLength(bytes, 1, delta);
  if (index > 0) {
    bytes[at++] = CHOICE_INDEX;
    bytes[at++] = choiceIndex;
  }
  bytes[at++] = TEXT;
  at = writeLength(bytes, at, length);
  bytes.write(content.value, at);
  return bytes;
}

/** How many bytes a length takes: seven bits in each. */
function sizeOfLength(length: number): number {
  let size = 1;
  for (let left = length; left > 0x7f; left = Math.floor(left / 0x80)) size += 1;
  return size;
}

/** Writes a length; where it ends. */
function writeLength(bytes: Buffer, from: number, length: number): number {
  let at = from;
  let left = length;
  for (; left > 0x7f; left = Math.floor(left / 0x80)) bytes[at++] = (left % 0x80) | 0x80;
  bytes[at++] = left;
  return at;
}
