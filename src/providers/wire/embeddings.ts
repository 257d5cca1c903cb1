import { endianness } from "node:os";
import type { EmbeddingAnswer } from "../../core/provider.ts";
import { Failure } from "../../core/failure.ts";
import { unreadable } from "./response-failure.ts";

/* What the embeddings of all dialects share. */

const BYTES_PER_VALUE = 4;
/** Values of the contract are 32 bits wide. Also false for NaN. */
const isFloat32 = (value: number): boolean => Math.abs(value) <= 3.4028234663852886e38;

/**
 * Reads a vector: an array of numbers, or base64 of 32-bit numbers in little-endian order. Throws `upstream_protocol` for
 * anything else, such as one with NaN.
 */
export function readVector(value: unknown): number[] {
  const values = typeof value === "string" ? decode(value) : value;
  if (!Array.isArray(values) || values.length === 0) throw unreadable();
  for (const one of values) if (typeof one !== "number" || !isFloat32(one)) throw unreadable();
  return values as number[];
}

function decode(base64: string): number[] {
  const bytes = Buffer.from(base64, "base64");
  if (bytes.length % BYTES_PER_VALUE !== 0) throw unreadable();
  if (endianness() === "BE") bytes.swap32();
  // A copy: the bytes of a Buffer may begin anywhere.
  const floats = new Float32Array(new Uint8Array(bytes).buffer);
  const values = new Array<number>(floats.length);
  for (let at = 0; at < floats.length; at++) values[at] = floats[at]!;
  return values;
}

/** Requires `count` vectors of the same length. Throws `upstream_protocol`. */
export function requireVectors(vectors: EmbeddingAnswer["vectors"], count: number): void {
  if (vectors.length !== count)
    throw new Failure("upstream_protocol", `The upstream provider returned ${vectors.length} vectors for ${count} inputs.`);
  const [first] = vectors;
  if (vectors.some(({ length }) => length !== first!.length))
    throw new Failure("upstream_protocol", "The upstream provider returned vectors of different lengths.");
}

/** The failure of a request for embeddings: its field with the text is `inputs`. */
export function ofInputs(failure: Failure): Failure {
  if (failure.detail !== "context_length_exceeded") return failure;
  return failure.with({ violations: [{ field: "inputs", description: "too long for the model's context window" }] });
}
