import { setImmediate } from "node:timers/promises";
import type { Embedding } from "../../gen/parley/v1/embedding_pb.js";

/** Numbers that are written in one turn of the event loop: some 20 ms. */
const NUMBERS_PER_TURN = 100_000;

/** Writes embeddings as the elements of a JSON list, over several turns of the event loop when they are long. */
export async function writeVectors(
  embeddings: readonly Embedding[],
  toJson: (values: readonly number[], index: number) => object,
): Promise<Buffer[]> {
  const pieces: Buffer[] = [];
  let written = 0;
  for (const [index, { values }] of embeddings.entries()) {
    pieces.push(Buffer.from(`${index === 0 ? "" : ","}${JSON.stringify(toJson(values, index))}`));
    written += values.length;
    if (written < NUMBERS_PER_TURN) continue;
    written = 0;
    await setImmediate();
  }
  return pieces;
}
