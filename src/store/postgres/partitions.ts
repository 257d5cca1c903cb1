import type { Statements } from "../statements.ts";

/*
 * Tables that grow with traffic have a partition for each month or day (UTC) in PostgreSQL, so that old rows are removed by dropping
 * a partition. There is no default partition: with one, PostgreSQL detaches none concurrently. A missing partition is created by the
 * transaction that needs it.
 */

/** Partitioned tables, each with the column of Unix milliseconds that decides the partition, and its period. */
export const PARTITIONED_TABLES = {
  completions: { column: "started_at_ms", by: "month" },
  usage_hours: { column: "hour_ms", by: "month" },
  usage_minutes: { column: "minute_ms", by: "day" },
  refusals: { column: "ended_at_ms", by: "day" },
} as const;

export type PartitionedTable = keyof typeof PARTITIONED_TABLES;

/** Tables with a partition for each month. */
export const MONTHLY_TABLES = ["completions", "usage_hours"] as const satisfies readonly PartitionedTable[];

/** The rows from before the table was partitioned; exists only in databases that had some. */
export function earlierOf(table: PartitionedTable): string {
  return `${table}_earlier`;
}

/** A partition and its bounds, in Unix milliseconds: `fromMs` included, `toMs` excluded. */
export interface Partition {
  readonly table: PartitionedTable;
  readonly name: string;
  readonly fromMs: number;
  readonly toMs: number;
  /** Whether its detachment was interrupted: it is no longer read and has to be detached for good. */
  readonly isDetaching: boolean;
}

/** A month or day, or one of the two long times before and after the range of a working clock. */
export interface Period {
  readonly fromMs: number;
  readonly toMs: number;
  /** End of the partition's name: `2026_11`, or `2026_11_27`. */
  readonly suffix: string;
}

const DAY_MS = 86_400_000;
const FIRST_MS = Date.UTC(2000, 0);
const LAST_MS = Date.UTC(2100, 0);

/** The period of a table's partitions that contains a time. */
export function periodAt(table: PartitionedTable, timeMs: number): Period {
  if (timeMs < FIRST_MS) return { fromMs: -Infinity, toMs: FIRST_MS, suffix: "before_2000" };
  if (timeMs >= LAST_MS) return { fromMs: LAST_MS, toMs: Infinity, suffix: "from_2100" };
  return PARTITIONED_TABLES[table].by === "month" ? monthAt(timeMs) : dayAt(timeMs);
}

function monthAt(timeMs: number): Period {
  const time = new Date(timeMs);
  const [year, month] = [time.getUTCFullYear(), time.getUTCMonth()];
  const suffix = time.toISOString().slice(0, 7).replace("-", "_");
  return { fromMs: Date.UTC(year, month), toMs: Date.UTC(year, month + 1), suffix };
}

function dayAt(timeMs: number): Period {
  const fromMs = Math.floor(timeMs / DAY_MS) * DAY_MS;
  const suffix = new Date(timeMs).toISOString().slice(0, 10).replaceAll("-", "_");
  return { fromMs, toMs: fromMs + DAY_MS, suffix };
}

/** Number of PostgreSQL's advisory lock for creating partitions. */
const LOCK_NUMBER = 7_165_422;

/** Times of rows, in Unix milliseconds, by the table that they are for. */
export type RowTimes = { readonly [T in PartitionedTable]?: readonly number[] };

/**
 * Creates the partitions that rows of these times need. Returns their number. Neither readers nor writers wait for it. Does nothing
 * for SQLite.
 */
export async function createPartitions(statements: Statements, times: RowTimes): Promise<number> {
  if (statements.kind === "sqlite") return 0;
  if (missingOf(await listPartitions(statements), times).length === 0) return 0;
  await statements.run("select pg_advisory_xact_lock(?)", [LOCK_NUMBER]);
  // Another process may have created them meanwhile.
  const missing = missingOf(await listPartitions(statements), times);
  for (const { table, suffix, fromMs, toMs } of missing) {
    const name = `${table}_${suffix}`;
    // It exists if retention has detached it and not dropped it yet.
    await statements.run(
      `create table if not exists ${name} (like ${table} including defaults including constraints including indexes)`,
      [],
    );
    // Attaching locks less than creating it as a partition would.
    const values = `from (${boundOf(fromMs)}) to (${boundOf(toMs)})`;
    await statements.run(`alter table ${table} attach partition ${name} for values ${values}`, []);
  }
  return missing.length;
}

/**
 * Returns whether a time is in a month whose partition retention is removing: PostgreSQL accepts no rows for it, and no other
 * partition in its place, until all transactions that may read it have ended. No month is for SQLite.
 */
export async function findLeavingMonths(statements: Statements): Promise<(timeMs: number) => boolean> {
  if (statements.kind === "sqlite") return () => false;
  const partitions = await listPartitions(statements);
  const leaving = partitions.filter(
    ({ table, isDetaching }) => isDetaching && PARTITIONED_TABLES[table].by === "month",
  );
  return (timeMs) => leaving.some(({ fromMs, toMs }) => fromMs <= timeMs && timeMs < toMs);
}

/** A bound of a partition in SQL. */
export function boundOf(timeMs: number): string {
  if (Number.isFinite(timeMs)) return String(timeMs);
  return timeMs < 0 ? "minvalue" : "maxvalue";
}

function missingOf(partitions: readonly Partition[], times: RowTimes): (Period & Pick<Partition, "table">)[] {
  const needs = Object.entries(times) as [PartitionedTable, readonly number[]][];
  return needs.flatMap(([table, timesMs]) => {
    const own = partitions.filter((each) => each.table === table);
    const periods = new Map(timesMs.map((timeMs) => periodAt(table, timeMs)).map((each) => [each.fromMs, each]));
    return [...periods.values()]
      .filter(({ fromMs, toMs }) => !own.some((each) => each.fromMs <= fromMs && toMs <= each.toMs))
      .map((period) => ({ table, ...period }));
  });
}

interface PartitionRow {
  readonly parent: PartitionedTable;
  readonly name: string;
  /** `FOR VALUES FROM ('1793491200000') TO ('1796083200000')`. */
  readonly bounds: string;
  readonly detaching: boolean;
}

const BOUNDS = /FROM \((MINVALUE|'-?\d+')\) TO \((MAXVALUE|'-?\d+')\)/;

/** The partitions of all tables. */
export async function listPartitions(statements: Pick<Statements, "run">): Promise<Partition[]> {
  const parents = Object.keys(PARTITIONED_TABLES).map((table) => `to_regclass('${table}')`);
  const rows = await statements.run<PartitionRow>(
    `select parent.relname as parent, child.relname as name, pg_get_expr(child.relpartbound, child.oid) as bounds,
      inhdetachpending as detaching
    from pg_inherits join pg_class as child on child.oid = inhrelid join pg_class as parent on parent.oid = inhparent
    where inhparent in (${parents.join(", ")})`,
    [],
  );
  return rows.map(({ parent, name, bounds, detaching }) => {
    const [, from = "", to = ""] = BOUNDS.exec(bounds ?? "") ?? [];
    return {
      table: parent,
      name,
      fromMs: readBound(from, -Infinity),
      toMs: readBound(to, Infinity),
      isDetaching: detaching,
    };
  });
}

function readBound(text: string, open: number): number {
  return /\d/.test(text) ? Number(text.replaceAll("'", "")) : open;
}
