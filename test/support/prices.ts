import type { Fees } from "../../src/core/fees.ts";
import type { Price } from "../../src/core/model.ts";

/** No fee per request, and unknown fees of tools. */
export const NO_FEES: Fees = {
  requests: 0,
  searchedRequests: 0,
  webSearches: undefined,
  fileSearches: undefined,
  codeExecutions: undefined,
};

/** A price without separate rates for other kinds of input and output. */
export function toPrice(price: Pick<Price, "input" | "output" | "cachedInput" | "imageOutput">): Price {
  const { input, output, cachedInput } = price;
  const cached = { cachedAudioInput: cachedInput, cachedImageInput: cachedInput };
  const written = { cacheWrite: input, cacheWriteHour: input };
  const others = { audioInput: input, imageInput: input, audioOutput: output };
  return { ...cached, ...written, ...others, fees: NO_FEES, ...price };
}
