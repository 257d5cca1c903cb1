import type { Usage } from "../../gen/parley/v1/completion_pb.js";
import type { Price } from "./model.ts";

/**
 * What a usage costs, in micro-USD, rounded half up. Cached prompt tokens and generated pictures have prices of their
 * own. Whole numbers throughout, and exact below 2^53: that is nine million tokens at 1,000 USD per million.
 */
export function costOf(usage: Usage, price: Price): number {
  const cached = Math.min(usage.cachedTokens ?? 0, usage.promptTokens);
  const images = Math.min(usage.completionImageTokens ?? 0, usage.completionTokens);
  const millionths =
    (usage.promptTokens - cached) * price.input +
    cached * price.cachedInput +
    (usage.completionTokens - images) * price.output +
    images * price.image;
  return Math.round(millionths / 1_000_000);
}
