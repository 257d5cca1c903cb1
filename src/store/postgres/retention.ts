import { sql } from "kysely";
import { connectMaintenance, type Database } from "../database.ts";
import { earlierOf, listPartitions, type PartitionedTable, periodAt } from "./partitions.ts";

/** Number of PostgreSQL's advisory lock for removing partitions. */
const LOCK_NUMBER = 7_165_424;

/**
 * Removes the months or days of a table that ended before a time, or else, of rows older than the partitions, at most `most`
 * of those with `column` before it. Returns the number of partitions or rows: call it until none is left. Neither readers
 * nor writers of the table wait for it. Answers 0 while another process removes some. No month or day is removed that has
 * not ended by the server's clock.
 */
export async function removeOld(
  database: Database,
  options: {
    readonly databaseUrl: string;
    readonly table: PartitionedTable;
    readonly column: string;
    readonly beforeMs: number;
    readonly most: number;
  },
): Promise<number> {
  // Detaching is more than one transaction, so the lock is held by another connection.
  return database.query.transaction().execute(async (guard) => {
    await sql`set local idle_in_transaction_session_timeout = 0`.execute(guard);
    const lock = sql<{ taken: boolean }>`select pg_try_advisory_xact_lock(${sql.lit(LOCK_NUMBER)}) as taken`;
    if (!(await lock.execute(guard)).rows[0]!.taken) return 0;
    const beforeMs = Math.min(options.beforeMs, await database.nowMs(guard));
    return (await dropPartitions(database, { ...options, beforeMs })) || removeRows(database, options);
  });
}

async function dropPartitions(
  database: Database,
  { databaseUrl, table, beforeMs }: Parameters<typeof removeOld>[1],
): Promise<number> {
  const partitions = await listPartitions({
    run: async <R>(text: string) => (await sql.raw<R>(text).execute(database.query)).rows,
  });
  const own = partitions.filter((each) => each.table === table);
  const old = own.filter(({ toMs }) => toMs <= beforeMs);
  const detached = await findDetached(database, table, beforeMs);
  if (old.length + detached.length === 0) return 0;
  const maintenance = await connectMaintenance(databaseUrl);
  try {
    // One that is detaching first: PostgreSQL allows one at a time.
    for (const { name, isDetaching } of old.toSorted((a, b) => Number(b.isDetaching) - Number(a.isDetaching))) {
      const how = isDetaching ? "finalize" : "concurrently";
      await sql.raw(`alter table ${table} detach partition "${name}" ${how}`).execute(maintenance.query);
    }
    const names = [...old.map(({ name }) => name), ...detached];
    for (const name of names) await sql.raw(`drop table "${name}"`).execute(maintenance.query);
    return names.length;
  } finally {
    await maintenance.close();
  }
}

/** Partitions that a process has detached, and ended before it dropped them. */
async function findDetached(database: Database, table: PartitionedTable, beforeMs: number): Promise<readonly string[]> {
  const { rows } = await sql<{ name: string }>`
    select child.relname as name from pg_class as child join pg_class as parent using (relnamespace)
    where parent.oid = to_regclass(${table}) and child.relkind = 'r' and not child.relispartition
      and child.relname ~ ${`^${table}_\\d{4}(_\\d{2}){1,2}$`}`.execute(database.query);
  return rows.map(({ name }) => name).filter((name) => endOfName(table, name) <= beforeMs);
}

/** End of a partition by its name: `usage_hours_2026_11`, or `usage_minutes_2026_11_27`. */
function endOfName(table: PartitionedTable, name: string): number {
  const [year, month, day = 1] = name
    .slice(table.length + 1)
    .split("_")
    .map(Number);
  return periodAt(table, Date.UTC(year!, month! - 1, day)).toMs;
}

async function removeRows(
  database: Database,
  { table, column, beforeMs, most }: Parameters<typeof removeOld>[1],
): Promise<number> {
  const earlier = earlierOf(table);
  const exists = sql`select 1 where to_regclass(${earlier}) is not null`;
  if ((await exists.execute(database.query)).rows.length === 0) return 0;
  const removed = sql`
    delete from ${sql.table(earlier)} where ctid = any(array(
      select ctid from ${sql.table(earlier)} where ${sql.ref(column)} < ${beforeMs}
      order by ${sql.ref(column)} limit ${sql.lit(most)}))`;
  return Number((await removed.execute(database.query)).numAffectedRows);
}
