import type { AggregateOptions, DatabaseSync } from "node:sqlite";
import type { Percentiles } from "../../ledger/usage-store.ts";

/** What must not exceed each of a `Percentiles`. */
export const SHARES = { p50: 0.5, p95: 0.95, p99: 0.99 } as const satisfies Record<keyof Percentiles, number>;

/** Gives SQLite the function `percentiles`: of a column, as a JSON list in the order of `SHARES`; null where it is empty. */
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
  // By its types what is gathered must be something that SQLite stores.
  database.aggregate("percentiles", percentiles as unknown as AggregateOptions);
}
