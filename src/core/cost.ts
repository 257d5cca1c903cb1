import type { TokenCounts } from "./ledger.ts";
import type { Price } from "./model.ts";
import type { SentSize } from "./provider.ts";

/** What changes the price of a request's tokens. */
export type Pricing = Pick<SentSize, "priceFactor" | "cacheWrite">;

/** Of most requests. */
export const PLAIN: Pricing = { priceFactor: 1, cacheWrite: "none" };

/**
 * What a completion costs, in micro-USD, rounded half up. Prompt tokens that were read from a cache or written to one, speech
 * and generated pictures have prices of their own; of writes that were asked for with different times, all have the price of
 * the longest. Whole numbers throughout for whole factors, and exact below 2^53: that is nine million tokens at 1,000 USD per
 * million.
 */
export function costOf(tokens: TokenCounts, price: Price, { priceFactor, cacheWrite }: Pricing = PLAIN): number {
  const cached = Math.min(tokens.cached, tokens.prompt);
  const written = Math.min(tokens.cacheWrite ?? 0, tokens.prompt - cached);
  const heard = Math.min(tokens.promptAudio ?? 0, tokens.prompt - cached - written);
  const images = Math.min(tokens.image, tokens.completion);
  const spoken = Math.min(tokens.completionAudio ?? 0, tokens.completion - images);
  const millionths =
    (tokens.prompt - cached - written - heard) * price.input +
    cached * price.cachedInput +
    written * (cacheWrite === "hour" ? price.cacheWriteHour : price.cacheWrite) +
    heard * price.audioInput +
    (tokens.completion - images - spoken) * price.output +
    images * price.image +
    spoken * price.audioOutput;
  return toMicroUsd(millionths, priceFactor);
}

/** Millionths of a micro-USD, which are tokens times prices, times `factor`: in micro-USD, rounded half up. */
export function toMicroUsd(millionths: number, factor: number): number {
  return Math.round((millionths * factor) / 1_000_000);
}
