import type { Statements } from "../statements.ts";

/*
 * Tables that grow with traffic have a partition for each month (UTC) in PostgreSQL, so that a month is removed by dropping its
 * partition. There is no default partition: with one, PostgreSQL detaches none concurrently. A missing partition is created by
 * the transaction that needs it.
 */

/** Partitioned tables, each with the column of Unix milliseconds that decides the month. */
export const MONTHLY_TABLES = { completions: "started_at_ms", usage_hours: "hour_ms" } as const;

export type MonthlyTable = keyof typeof MONTHLY_TABLES;

/** The rows from before the table was partitioned; exists only in databases that had some. */
export function earlierOf(table: MonthlyTable): string {
  return `${table}_earlier`;
}

/** A partition and its bounds, in Unix milliseconds: `fromMs` included, `toMs` excluded. */
export interface Partition {
  readonly table: MonthlyTable;
  readonly name: string;
  readonly fromMs: number;
  readonly toMs: number;
  /** Whether its detachment was interrupted: it is no longer read and has to be detached for good. */
  readonly isDetaching: boolean;
}

/** A month, or one of the two long times outside of those that a working clock tells. */
export interface Month {
  readonly fromMs: number;
  readonly toMs: number;
  /** End of the partition's name: `2026_11`. */
  readonly suffix: string;
}

const FIRST_MS = Date.UTC(2000, 0);
const LAST_MS = Date.UTC(2100, 0);

/** The month that contains a time. */
export function monthAt(timeMs: number): Month {
  if (timeMs < FIRST_MS) return { fromMs: -Infinity, toMs: FIRST_MS, suffix: "before_2000" };
  if (timeMs >= LAST_MS) return { fromMs: LAST_MS, toMs: Infinity, suffix: "from_2100" };
  const time = new Date(timeMs);
  const [year, month] = [time.getUTCFullYear(), time.getUTCMonth()];
  const suffix = time.toISOString().slice(0, 7).replace("-", "_");
  return { fromMs: Date.UTC(year, month), toMs: Date.UTC(year, month + 1), suffix };
}

/** Number of PostgreSQL's advisory lock for creating partitions. */
const LOCK_NUMBER = 7_165_422;

/**
 * Creates the partitions that rows of these times need, in all monthly tables. Returns their number. Neither readers nor writers
 * wait for it. Does nothing for SQLite.
 */
export async function createMonths(statements: Statements, timesMs: readonly number[]): Promise<number> {
  if (statements.kind === "sqlite") return 0;
  const missing = missingMonths(await listPartitions(statements), timesMs);
  if (missing.length === 0) return 0;
  await statements.run("select pg_advisory_xact_lock(?)", [LOCK_NUMBER]);
  // Another process may have created them meanwhile.
  const months = missingMonths(await listPartitions(statements), timesMs);
  for (const { table, suffix, fromMs, toMs } of months) {
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
  return months.length;
}

/**
 * Returns whether a time is in a month whose partition retention is removing: PostgreSQL accepts no rows for it, and no other
 * partition in its place, until all transactions that may read it have ended. No month is for SQLite.
 */
export async function findLeavingMonths(statements: Statements): Promise<(timeMs: number) => boolean> {
  if (statements.kind === "sqlite") return () => false;
  const leaving = (await listPartitions(statements)).filter(({ isDetaching }) => isDetaching);
  return (timeMs) => leaving.some(({ fromMs, toMs }) => fromMs <= timeMs && timeMs < toMs);
}

/** A bound of a partition in SQL. */
export function boundOf(timeMs: number): string {
  if (Number.isFinite(timeMs)) return String(timeMs);
  return timeMs < 0 ? "minvalue" : "maxvalue";
}

function missingMonths(
  partitions: readonly Partition[],
  timesMs: readonly number[],
): (Month & Pick<Partition, "table">)[] {
  const months = new Map(timesMs.map(monthAt).map((month) => [month.fromMs, month]));
  const tables = Object.keys(MONTHLY_TABLES) as MonthlyTable[];
  return tables.flatMap((table) => {
    const own = partitions.filter((each) => each.table === table);
    return [...months.values()]
      .filter(({ fromMs, toMs }) => !own.some((each) => each.fromMs <= fromMs && toMs <= each.toMs))
      .map((month) => ({ table, ...month }));
  });
}

interface PartitionRow {
  readonly parent: MonthlyTable;
  readonly name: string;
  /** `FOR VALUES FROM ('1793491200000') TO ('1796083200000')`. */
  readonly bounds: string;
  readonly detaching: boolean;
}

const BOUNDS = /FROM \((MINVALUE|'-?\d+')\) TO \((MAXVALUE|'-?\d+')\)/;

/** The partitions of all monthly tables. */
export async function listPartitions(statements: Pick<Statements, "run">): Promise<Partition[]> {
  const parents = Object.keys(MONTHLY_TABLES).map((table) => `to_regclass('${table}')`);
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
