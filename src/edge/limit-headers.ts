import type { LimitFacts } from "../core/limiter.ts";
export function limitHeaders(facts: LimitFacts): [string, string][] {
  return [];
}
