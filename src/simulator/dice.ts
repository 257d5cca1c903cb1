import { createHash } from "node:crypto";

/** Deterministic random numbers: the same seed always gives the same sequence. */
export interface Dice {
  /** An integer from 0 up to, and without, `sides`. */
  roll(sides: number): number;
  /** One of the items; there must be at least one. */
  pick<T>(items: readonly [T, ...T[]]): T;
}

/** A short, stable fingerprint of a text: 32 hexadecimal digits. */
export function fingerprint(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 32);
}

/** Dice seeded with a fingerprint (mulberry32 over its first 32 bits: ample for choosing words and colours). */
export function createDice(seed: string): Dice {
  let state = Number.parseInt(fingerprint(seed).slice(0, 8), 16);
  const roll = (sides: number): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * sides);
  };
  return { roll, pick: (items) => items[roll(items.length)] ?? items[0] };
}
