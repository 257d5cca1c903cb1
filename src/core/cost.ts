import type { Price } from "./model.ts";
import type { TokenCounts } from "./ledger.ts";

/**
 * What a completion costs, in micro-USD, rounded half up. Cached prompt tokens and generated pictures have prices of their
 * own. Whole numbers throughout, and exact below 2^53: that is nine million tokens at 1,000 USD per million.
 */
export function costOf(tokens: TokenCounts, price: Price): number {
  const cached = Math.min(tokens.cached, tokens.prompt);
  const images = Math.min(tokens.image, tokens.completion);
  return costOfTokens([
    [tokens.prompt - cached, price.input],
    [cached, price.cachedInput],
    [tokens.completion - images, price.output],
    [images, price.image],
  ]);
}

/** The cost of numbers of tokens, each at its own price in millionths of a micro-USD. */
export function costOfTokens(parts: readonly (readonly [tokens: number, price: number])[]): number {
  let millionths = 0;
  for (const [tokens, price] of parts) millionths += tokens * price;
  return Math.round(millionths / 1_000_000);
}
