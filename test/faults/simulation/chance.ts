import { createDice, type Dice } from "../../../src/simulator/dice.ts";

const FRACTIONS = 2 ** 31;

/** Random numbers of one world: the same seed gives the same sequence. */
export class Chance {
  readonly #dice: Dice;

  constructor(seed: string) {
    this.#dice = createDice(seed);
  }

  /** A whole number in [from, to]. */
  between(least: number, most: number): number {
    return least + this.#dice.roll(most - least + 1);
  }

  /** True with this probability in percent. */
  percent(share: number): boolean {
    return this.fraction() * 100 < share;
  }

  /** In [0, 1). */
  fraction(): number {
    return this.#dice.roll(FRACTIONS) / FRACTIONS;
  }

  pick<T>(items: readonly T[]): T {
    if (items.length === 0) throw new RangeError("there is nothing to pick from");
    return items[this.#dice.roll(items.length)] as T;
  }

  /** One of the names, with these weights. */
  weighted<K extends string>(weights: Readonly<Partial<Record<K, number>>>): K {
    const entries = Object.entries(weights) as [K, number][];
    let left = this.fraction() * entries.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [name, weight] of entries) {
      left -= weight;
      if (left < 0) return name;
    }
    return entries[0]![0];
  }
}
