import type { AggregateOptions, DatabaseSync } from "node:sqlite";
import type { Percentiles } from "../../ledger/usage-store.ts";

/** Shares of the values that are at most each of `Percentiles`. */
export const SHARES = { p50: 0.5, p95: 0.95, p99: 0.99 } as const satisfies Record<keyof Percentiles, number>;

/** Registers SQLite's aggregate function `percentiles`: a JSON list in the order of `SHARES`; null without values. */
export function addPercentiles(database: DatabaseSync): void {
  const percentiles = {
    start: (): number[] => [],
    step(values: number[], value: unknown) {
      if (typeof value === "number") values.push(value);
      return values;
    },
    result(values: number[]) {
      if (values.length === 0) return null;
      const sorted = Float64Array.from(values).toSorted();
      return JSON.stringify(Object.values(SHARES).map((share) => sorted[Math.ceil(sorted.length * share) - 1]));
    },
  };
  // The types allow only SQL values as an aggregate's state.
  database.aggregate("percentiles", percentiles as unknown as AggregateOptions);
}
