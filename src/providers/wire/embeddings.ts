import { setImmediate } from "node:timers/promises";
import type { EmbeddingAnswer } from "../../core/provider.ts";
import { Failure } from "../../core/failure.ts";
import { unreadable } from "./response-failure.ts";

/* Reading of vectors, shared by the embeddings of all dialects. */

const BYTES_PER_VALUE = 4;
/** Limit of a vector's length, because a vector is read and written in one turn of the event loop. Models have at most some thousand. */
const MAX_DIMENSIONS = 65_536;
/** Values of the contract are 32 bits wide. Also false for NaN. */
const isFloat32 = (value: number): boolean => Math.abs(value) <= 3.4028234663852886e38;

/** Numbers that are read in one turn of the event loop: some 10 ms. */
const NUMBERS_PER_TURN = 50_000;

/** Reads vectors, over several turns of the event loop when they are long. Throws what `readVector` throws. */
export async function readVectors(given: readonly unknown[]): Promise<number[][]> {
  const vectors: number[][] = [];
  let read = 0;
  for (const value of given) {
    const vector = readVector(value);
    vectors.push(vector);
    read += vector.length;
    if (read < NUMBERS_PER_TURN) continue;
    read = 0;
    await setImmediate();
  }
  return vectors;
}

/**
 * Reads a vector: an array of numbers, or base64 of 32-bit numbers in little-endian order. Throws `upstream_protocol` for
 * anything else, such as one with NaN, and one longer than MAX_DIMENSIONS.
 */
function readVector(value: unknown): number[] {
  const values = typeof value === "string" ? decode(value) : value;
  if (!Array.isArray(values) || values.length === 0 || values.length > MAX_DIMENSIONS) throw unreadable();
  for (const one of values) if (typeof one !== "number" || !isFloat32(one)) throw unreadable();
  return values as number[];
}

/** Decodes base64. Empty for a length that is not a multiple of BYTES_PER_VALUE, and beyond MAX_DIMENSIONS. */
function decode(base64: string): number[] {
  const values: number[] = [];
  if (base64.length > (MAX_DIMENSIONS * BYTES_PER_VALUE * 4) / 3 + 4) return values;
  const { buffer, byteOffset, byteLength } = Buffer.from(base64, "base64");
  if (byteLength % BYTES_PER_VALUE !== 0) return values;
  const bytes = new DataView(buffer, byteOffset, byteLength);
  for (let at = 0; at < byteLength; at += BYTES_PER_VALUE) values.push(bytes.getFloat32(at, true));
  return values;
}

/** Requires `count` vectors of the same length. Throws `upstream_protocol`. */
export function requireVectors(vectors: EmbeddingAnswer["vectors"], count: number): void {
  if (vectors.length !== count)
    throw new Failure(
      "upstream_protocol",
      `The upstream provider returned ${vectors.length} vectors for ${count} inputs.`,
    );
  const [first] = vectors;
  if (vectors.some(({ length }) => length !== first!.length))
    throw new Failure("upstream_protocol", "The upstream provider returned vectors of different lengths.");
}

/** The failure of a request for embeddings: its field with the text is `inputs`. */
export function ofInputs(failure: Failure): Failure {
  if (failure.detail !== "context_length_exceeded") return failure;
  return failure.with({ violations: [{ field: "inputs", description: "too long for the model's context window" }] });
}
