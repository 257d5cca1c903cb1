import type { Place } from "./place.ts";

/** A part of the whole, 0 to 1. `self` is what the code itself has of it. */
export interface Cost {
  readonly name: string;
  readonly self: number;
  /** Also what was called from there, until a nearer place of ours was reached. */
  readonly charged: number;
}

/** Where time, or memory, went: shares of the whole. */
export interface CostSummary {
  /** By place: our layers, packages, Node's own modules, collection and native code. The dearest first. */
  readonly layers: readonly Cost[];
  /** By function, the dearest by their own cost first. */
  readonly functions: readonly Cost[];
  /** Functions of ours, the dearest by what is charged to them first. */
  readonly ours: readonly Cost[];
}

/** Adds up samples of a profile. */
export class CostBook {
  readonly #layers = new Costs();
  readonly #functions = new Costs();
  readonly #ours = new Costs();
  #total = 0;

  /** Of all samples. */
  get total(): number {
    return this.#total;
  }

  /** One sample: where it was, and the nearest place of ours that led there. */
  add(amount: number, place: Place, caller: Place | undefined): void {
    this.#total += amount;
    this.#layers.add(place.layer, { self: amount, charged: 0 });
    this.#layers.add(caller?.layer ?? place.layer, { self: 0, charged: amount });
    this.#functions.add(place.name, { self: amount, charged: 0 });
    if (caller !== undefined) this.#ours.add(caller.name, { self: place === caller ? amount : 0, charged: amount });
  }

  summary(): CostSummary {
    return {
      layers: this.#layers.parts(this.#total, "self"),
      functions: this.#functions.parts(this.#total, "self"),
      ours: this.#ours.parts(this.#total, "charged"),
    };
  }
}

class Costs {
  readonly #amounts = new Map<string, { self: number; charged: number }>();

  add(name: string, { self, charged }: { self: number; charged: number }): void {
    const sum = this.#amounts.get(name);
    if (sum === undefined) this.#amounts.set(name, { self, charged });
    else {
      sum.self += self;
      sum.charged += charged;
    }
  }

  parts(total: number, by: "self" | "charged"): readonly Cost[] {
    return [...this.#amounts]
      .map(([name, { self, charged }]) => ({ name, self: self / total, charged: charged / total }))
      .toSorted((a, b) => b[by] - a[by]);
  }
}
