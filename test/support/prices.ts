import type { Price } from "../../src/core/model.ts";

/** A price whose other kinds of input and output cost what input and output do. */
export function toPrice(price: Pick<Price, "input" | "output" | "cachedInput" | "image">): Price {
  const { input, output } = price;
  return { cacheWrite: input, cacheWriteHour: input, audioInput: input, audioOutput: output, ...price };
}
