/** The middle value, or the mean of the two middle ones. NaN for none. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return Number.isInteger(middle) ? (sorted[middle - 1]! + sorted[middle]!) / 2 : sorted[Math.floor(middle)]!;
}

/** Percentile. NaN for no values. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? Number.NaN;
}

/**
 * Mean of the cheapest fifth (at least one value): the cost with little other load on a shared machine. NaN for no
 * values.
 */
export function quiet(values: readonly number[]): number {
  const cheapest = values.toSorted((a, b) => a - b).slice(0, Math.max(1, Math.round(values.length / 5)));
  return cheapest.reduce((sum, value) => sum + value, 0) / cheapest.length;
}
