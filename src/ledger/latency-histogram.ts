/**
 * Upper bounds of the buckets in milliseconds, those of `parley_completion_seconds`. Longer durations have a bucket of their own.
 * The columns of `target_latencies` are named after them.
 */
export const LATENCY_BOUNDS_MS = [50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000];

/** Number of durations in each bucket: one more than there are bounds. */
export type LatencyHistogram = readonly number[];

/** The histogram of no durations. */
export function emptyHistogram(): number[] {
  return Array.from({ length: LATENCY_BOUNDS_MS.length + 1 }, () => 0);
}

/** Adds a duration in milliseconds to a histogram. */
export function addDuration(histogram: number[], durationMs: number): void {
  const bucket = LATENCY_BOUNDS_MS.findIndex((boundMs) => durationMs <= boundMs);
  histogram[bucket === -1 ? LATENCY_BOUNDS_MS.length : bucket]! += 1;
}

/** The histogram of the durations of both. */
export function addHistograms(one: LatencyHistogram, other: LatencyHistogram): LatencyHistogram {
  return one.map((count, bucket) => count + other[bucket]!);
}

/** Number of durations. */
export function countOf(histogram: LatencyHistogram): number {
  return histogram.reduce((sum, count) => sum + count, 0);
}

/**
 * Estimate of a percentile of a histogram that is not empty, in milliseconds: durations are taken as evenly spread within their
 * bucket, and those above the last bound as equal to it.
 */
export function percentileOf(histogram: LatencyHistogram, percent: number): number {
  let left = (countOf(histogram) * percent) / 100;
  for (const [bucket, count] of histogram.entries()) {
    if (count > 0 && left <= count) {
      const [fromMs, toMs] = [LATENCY_BOUNDS_MS[bucket - 1] ?? 0, LATENCY_BOUNDS_MS[bucket]];
      return toMs === undefined ? fromMs : fromMs + ((toMs - fromMs) * left) / count;
    }
    left -= count;
  }
  return LATENCY_BOUNDS_MS.at(-1)!;
}
