import { addDuration, emptyHistogram, type LatencyHistogram } from "../../src/ledger/latency-histogram.ts";

/** The histogram of these durations in milliseconds. */
export function histogramOf(durationsMs: readonly number[]): LatencyHistogram {
  const histogram = emptyHistogram();
  for (const durationMs of durationsMs) addDuration(histogram, durationMs);
  return histogram;
}
