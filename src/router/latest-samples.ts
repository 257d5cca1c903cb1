/** How many are kept. */
const CAPACITY = 64;

/** Counts numbers, and keeps the latest 64 of them. */
export class LatestSamples {
  readonly #values: number[] = [];
  #count = 0;

  /** How many there were, those that are forgotten included. */
  get count(): number {
    return this.#count;
  }

  add(value: number): void {
    this.#values[this.#count % CAPACITY] = value;
    this.#count += 1;
  }

  /** In no particular order. */
  values(): readonly number[] {
    return this.#values;
  }
}

/** The smallest of the sorted numbers, of which there is at least one, that `percent` of 100 of them are not above. */
export function percentile(sorted: readonly number[], percent: number): number {
  return sorted[Math.max(Math.ceil((sorted.length * percent) / 100), 1) - 1]!;
}
