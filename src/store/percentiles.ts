import type { AggregateOptions, DatabaseSync } from "node:sqlite";
import { type RawBuilder, sql } from "kysely";
import type { Percentiles } from "../ledger/usage-store.ts";
import type { Database } from "./database.ts";

/** What must not exceed each of a `Percentiles`. */
const SHARES = { p50: 0.5, p95: 0.95, p99: 0.99 } as const satisfies Record<keyof Percentiles, number>;

/**
 * The percentiles of a column as JSON text for `readPercentiles`; null where it has no values. Each is the nearest rank: a
 * value that there is. PostgreSQL has a function for it. With window functions, which both have, SQLite would take three
 * times as long as with ours.
 */
export function percentilesOf({ kind }: Pick<Database, "kind">, column: string): RawBuilder<string | null> {
  if (kind === "sqlite") return sql`percentiles(${sql.ref(column)})`;
  const shares = sql.join(Object.values(SHARES).map((share) => sql.lit(share)));
  return sql`array_to_json(percentile_disc(array[${shares}]) within group (order by ${sql.ref(column)}))::text`;
}

/** What `percentilesOf` has found. */
export function readPercentiles(text: string | null): Percentiles | undefined {
  if (text === null) return undefined;
  const [p50, p95, p99] = JSON.parse(text) as [number, number, number];
  return { p50, p95, p99 };
}

/** Gives SQLite the function of `percentilesOf`. */
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
