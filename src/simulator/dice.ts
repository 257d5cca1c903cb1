import { createHash } from "node:crypto";

/** Deterministic random numbers: the same seed gives the same sequence. */
export interface Dice {
  /** Returns an integer from 0 to `sides` - 1. */
  roll(sides: number): number;
  /** Returns one of the items. */
  pick<T>(items: readonly [T, ...T[]]): T;
}

/** Returns a short, stable hash of a text: 32 hexadecimal digits. */
export function fingerprint(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 32);
}

/**
 * Creates a generator seeded with a fingerprint. Uses mulberry32 with the first 32 bits, which is enough to choose
 * words and colours.
 */
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
