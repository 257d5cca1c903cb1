import type { Logger } from "./logger.ts";

const TOLD_EVERY_MS = 60_000;

/** Returns a function that writes a warning with the number of its calls since the last one, at most once in TOLD_EVERY_MS. */
export function atIntervals(log: Pick<Logger, "warn">, text: string): (facts: (calls: number) => object) => void {
  let calls = 0;
  let toldMs = -Infinity;
  return (facts) => {
    calls += 1;
    const nowMs = performance.now();
    if (nowMs < toldMs + TOLD_EVERY_MS) return;
    log.warn(facts(calls), text);
    [calls, toldMs] = [0, nowMs];
  };
}
