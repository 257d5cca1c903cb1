import type { Embedding } from "../../gen/parley/v1/embedding_pb.js";

/** Length in characters of the pieces in which vectors are written. */
const PIECE_CHARS = 64 * 1024;

/** The text around the vectors of an answer. */
export interface Frame {
  readonly head: string;
  readonly tail: string;
}

/**
 * Writes embeddings as the elements of a JSON list within a frame. Each piece is created when it is requested, and its numbers are
 * released: an answer may have millions of numbers, whose text is twice as large.
 */
export function* writeVectors(
  embeddings: readonly Embedding[],
  { head, tail }: Frame,
  toJson: (values: readonly number[], index: number) => object,
): Generator<Buffer> {
  let text = head;
  for (const [index, embedding] of embeddings.entries()) {
    text += `${index === 0 ? "" : ","}${JSON.stringify(toJson(embedding.values, index))}`;
    embedding.values = [];
    if (text.length < PIECE_CHARS) continue;
    yield Buffer.from(text);
    text = "";
  }
  yield Buffer.from(text + tail);
}
