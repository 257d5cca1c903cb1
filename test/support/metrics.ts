import type { Gauges } from "../../src/telemetry/collected-metrics.ts";
import type { AttemptSample, CompletionSample } from "../../src/telemetry/completion-metrics.ts";

/** Gauges of an idle process. */
export const QUIET: Gauges = {
  activeCalls: () => 0,
  breakers: () => new Map(),
  hedges: () => new Map(),
  retries: () => new Map(),
  outliers: () => new Map(),
  ledgerWaiting: () => 0,
  ledgerLagMs: () => 0,
  ratesLocal: () => false,
  ratesDecidedLocally: () => 0,
  admission: () => ({ waiting: 0, limit: 512, memoryIsShort: false, refused: {} }),
  connectionsRefused: () => 0,
};

/** A served call of a target. */
export function attemptSample(given: Partial<AttemptSample> = {}): AttemptSample {
  return {
    target: "words",
    provider: "local",
    outcome: "served",
    durationMs: 100,
    firstContentMs: undefined,
    ...given,
  };
}

/** A whole answer that was served. */
export function completionSample(given: Partial<CompletionSample> = {}): CompletionSample {
  return {
    entrance: "http",
    model: "words",
    outcome: "served",
    streamed: false,
    durationMs: 120,
    firstContentMs: undefined,
    promptTokens: 3,
    cachedTokens: 0,
    completionTokens: 5,
    costMicroUsd: 0,
    isEstimated: false,
    isOverReserved: false,
    attempts: [attemptSample()],
    caller: { key: "key_1", tags: undefined },
    ...given,
  };
}
