/** Counts samples and keeps the latest ones. */
export class LatestSamples {
  readonly #capacity: number;
  readonly #values: number[] = [];
  #count = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** Number of samples so far, dropped ones included. */
  get count(): number {
    return this.#count;
  }

  add(value: number): void {
    this.#values[this.#count % this.#capacity] = value;
    this.#count += 1;
  }

  /** The kept samples, in no particular order. */
  values(): readonly number[] {
    return this.#values;
  }
}

/** Percentile of a non-empty sorted list (nearest rank). */
export function percentile(sorted: readonly number[], percent: number): number {
  return sorted[Math.max(Math.ceil((sorted.length * percent) / 100), 1) - 1]!;
}
