import type { Price } from "../../src/core/model.ts";

/** A price without separate rates for other kinds of input and output. */
export function toPrice(price: Pick<Price, "input" | "output" | "cachedInput" | "imageOutput">): Price {
  const { input, output, cachedInput } = price;
  const cached = { cachedAudioInput: cachedInput, cachedImageInput: cachedInput };
  const written = { cacheWrite: input, cacheWriteHour: input };
  return { ...cached, ...written, audioInput: input, imageInput: input, audioOutput: output, webSearch: 0, ...price };
}
