import type { Refusal } from "./answer.ts";
import { createDice } from "./dice.ts";
import type { Order } from "./dialect.ts";
import { estimateTokens } from "./text.ts";

/** An embedding request, independent of the dialect. */
export interface EmbeddingOrder {
  readonly model: string;
  readonly texts: readonly string[];
  readonly dimensions: number;
  readonly encodeStreamError: (refusal: Refusal) => string;
  /** Encodes the vectors as the JSON body. */
  readonly encode: (vectors: readonly (readonly number[])[]) => string;
}

/** Positions of a vector to which a word adds. */
const POSITIONS_PER_WORD = 24;

/**
 * Returns the vector of a text, of length 1. Deterministic: the same text gets the same vector, and texts with the same words
 * get similar ones.
 */
export function embed(text: string, dimensions: number): number[] {
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [text];
  const sums = Array.from({ length: dimensions }, () => 0);
  for (const word of words) {
    const dice = createDice(word);
    for (let added = 0; added < POSITIONS_PER_WORD; added++) sums[dice.roll(dimensions)]! += dice.roll(2001) / 1000 - 1;
  }
  const length = Math.hypot(...sums);
  return sums.map((sum) => Math.fround(length === 0 ? 1 / Math.sqrt(dimensions) : sum / length));
}

/** Counts the tokens of all texts. */
export function countTextTokens(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + estimateTokens(text), 0);
}

/**
 * Converts the request to an order without generated answers, so that faults and the delay before the answer apply. The fault
 * directive is that of the last text.
 */
export function toOrder({ model, texts, dimensions, encode, encodeStreamError }: EmbeddingOrder): Order {
  return {
    prompt: {
      model,
      turns: [{ role: "user", text: texts.at(-1) ?? "", images: [] }],
      tools: [],
      toolChoice: { mode: "none", parallel: false },
      stop: [],
    },
    choices: 0,
    streamType: undefined,
    encodeWhole: () => encode(texts.map((text) => embed(text, dimensions))),
    encodeStream: () => [],
    encodeStreamError,
  };
}
