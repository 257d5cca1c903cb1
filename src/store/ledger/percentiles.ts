import { type RawBuilder, sql } from "kysely";
import type { Percentiles } from "../../ledger/usage-store.ts";
import type { Database } from "../database.ts";
import { SHARES } from "../sqlite/percentiles.ts";

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
