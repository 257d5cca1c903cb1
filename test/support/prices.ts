import type { Price } from "../../src/core/model.ts";

/** A price without separate rates for other kinds of input and output. */
export function toPrice(price: Pick<Price, "input" | "output" | "cachedInput" | "image">): Price {
  const { input, output } = price;
  return { cacheWrite: input, cacheWriteHour: input, audioInput: input, audioOutput: output, ...price };
}
