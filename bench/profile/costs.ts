import type { Place } from "./place.ts";

/** Shares of the total, 0 to 1. `self` is the code's own share. */
export interface Cost {
  readonly name: string;
  readonly self: number;
  /** Including callees, up to the next function of Parley. */
  readonly charged: number;
}

/** Shares of time or memory. */
export interface CostSummary {
  /** By place: Parley's layers, packages, Node's modules, garbage collection and native code; the largest first. */
  readonly layers: readonly Cost[];
  /** By function, sorted by own cost. */
  readonly functions: readonly Cost[];
  /** Parley's functions, sorted by cost including callees. */
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

  /** Adds one sample: its place, and the nearest calling function of Parley. */
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
