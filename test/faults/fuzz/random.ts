import { seed } from "../support/scale.ts";

/** Numbers that look random and are the same ones for the same seed (mulberry32). */
export class Random {
  #state: number;

  constructor(from: number) {
    this.#state = from | 0;
  }

  /** From 0 up to, but not including, 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number from 0 up to, but not including, the limit. */
  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  /** One of these. */
  pick<T>(of: readonly T[]): T {
    return of[this.below(of.length)]!;
  }

  /** True in so many of a hundred cases. */
  percent(of: number): boolean {
    return this.next() * 100 < of;
  }

  /** So many bytes. */
  bytes(count: number): Buffer {
    return Buffer.from(Array.from({ length: count }, () => this.below(256)));
  }
}

/** What input number `index` of a kind is drawn from: each can be made again without those before it. */
export function randomOf(kind: string, index: number): Random {
  let mixed = seed() ^ Math.imul(index + 1, 0x9e3779b1);
  for (const char of kind) mixed = Math.imul(mixed ^ char.charCodeAt(0), 0x01000193);
  return new Random(mixed ^ (mixed >>> 15));
}
