import { seed } from "../../support/scale.ts";

/** Pseudo-random numbers from a seed (mulberry32). */
export class Random {
  #state: number;

  constructor(from: number) {
    this.#state = from | 0;
  }

  /** In [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number in [0, limit). */
  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  pick<T>(of: readonly T[]): T {
    return of[this.below(of.length)]!;
  }

  /** True with this probability in percent. */
  percent(of: number): boolean {
    return this.next() * 100 < of;
  }

  /** `count` random bytes. */
  bytes(count: number): Buffer {
    return Buffer.from(Array.from({ length: count }, () => this.below(256)));
  }
}

/** Generator for input number `index` of a kind, so that each input can be repeated alone. */
export function randomOf(kind: string, index: number): Random {
  let mixed = seed() ^ Math.imul(index + 1, 0x9e3779b1);
  for (const char of kind) mixed = Math.imul(mixed ^ char.charCodeAt(0), 0x01000193);
  return new Random(mixed ^ (mixed >>> 15));
}
