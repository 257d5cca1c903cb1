/** The middle value, or the mean of the two middle ones. NaN for none. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return Number.isInteger(middle) ? (sorted[middle - 1]! + sorted[middle]!) / 2 : sorted[Math.floor(middle)]!;
}

/** The value that so many percent of the values do not exceed. NaN for none. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? Number.NaN;
}

/**
 * The mean of the cheapest fifth, of one value at least: what a slice costs while a shared machine's neighbours are
 * quiet. NaN for none.
 */
export function quiet(values: readonly number[]): number {
  const cheapest = values.toSorted((a, b) => a - b).slice(0, Math.max(1, Math.round(values.length / 5)));
  return cheapest.reduce((sum, value) => sum + value, 0) / cheapest.length;
}
