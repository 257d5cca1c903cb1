import type { Attempt } from "../../src/core/attempt.ts";

/** A served attempt without delay, with these overrides. */
export function attemptOf(facts: Partial<Attempt> = {}): Attempt {
  return { model: "m", outcome: "served", reason: "", durationMs: 0, startMs: 0, ...facts };
}
