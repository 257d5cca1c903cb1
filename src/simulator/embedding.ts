import { setImmediate as nextTurn } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { EmbeddingsSchema } from "../../gen/parley/v1/embedding_pb.js";
import type { ReadEmbedding } from "../formats/format.ts";
import type { Refusal } from "./answer.ts";
import { createDice } from "./dice.ts";
import type { Order } from "./dialect.ts";
import { estimateTokens } from "./text.ts";

/** An embedding request, independent of the dialect. */
export interface EmbeddingOrder {
  readonly model: string;
  readonly texts: readonly string[];
  readonly dimensions: number;
  /** Undefined where the provider counts none. */
  readonly inputTokens?: number;
  readonly encodeStreamError: (refusal: Refusal) => string;
  /** The writer of the format. */
  readonly write: ReadEmbedding["write"];
}

/** Positions of a vector to which a word adds. */
const POSITIONS_PER_WORD = 24;
/** Words at the beginning of a text that its vector depends on. */
const MAX_WORDS = 2_000;

const WORD = /[\p{L}\p{N}]+/gu;

/**
 * Returns the vector of a text, of length 1. Deterministic: the same text gets the same vector, and texts with the same words
 * get similar ones.
 */
function embed(text: string, dimensions: number): number[] {
  const found = text.toLowerCase().matchAll(WORD).take(MAX_WORDS);
  const words = Array.from(found, ([word]) => word);
  if (words.length === 0) words.push(text);
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
export function toOrder(order: EmbeddingOrder): Order {
  const { model, texts, dimensions, inputTokens, encodeStreamError } = order;
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
    async encodeWhole() {
      const embeddings: { readonly values: number[] }[] = [];
      for (const text of texts) {
        embeddings.push({ values: embed(text, dimensions) });
        // A text may take some milliseconds.
        await nextTurn();
      }
      const usage = inputTokens === undefined ? {} : { usage: { inputTokens } };
      return Buffer.concat([...order.write(create(EmbeddingsSchema, { model, embeddings, ...usage }))]).toString();
    },
    encodeStream: () => [],
    encodeStreamError,
  };
}
