import { type Kysely, sql } from "kysely";
import type { Migration } from "../migrations.ts";
import { StoreError } from "../store-error.ts";
import { earlierOf, MONTHLY_TABLES, monthAt, type MonthlyTable } from "../postgres/months.ts";

const DAY_MS = 86_400_000;

/** Primary keys of the partitioned tables: PostgreSQL requires the column of the partitions in them. */
const KEYS: Readonly<Record<MonthlyTable, string>> = {
  completions: "id, started_at_ms",
  usage_hours: "hour_ms, account_id, key_id, model, outcome",
};

/** The other indexes, by the part of their names after the table. */
const INDEXES: Readonly<Record<MonthlyTable, Readonly<Record<string, string>>>> = {
  completions: {
    end: "ended_at_ms",
    account_end: "account_id, ended_at_ms",
    key_end: "key_id, ended_at_ms",
    request: "request_id, ended_at_ms",
  },
  usage_hours: { account: "account_id, hour_ms", key: "key_id, hour_ms" },
};

/**
 * Partitions the tables that grow with traffic by month, in PostgreSQL, and adds up the usage of all accounts by the hour. Existing
 * rows stay in their table, which becomes the partition of all times before the month after this one.
 */
export const monthlyPartitions: Migration = {
  name: "a partition for each month of the ledger in PostgreSQL, and the usage of all accounts",

  async prepare(database, kind) {
    if (kind === "sqlite") return;
    await checkVersion(database);
    for (const table of tables()) await makeAttachable(database, table, { concurrently: true });
  },

  async up(database, kind) {
    if (kind === "sqlite") return sumAllAccounts(database);
    await checkVersion(database);
    // All at first, and in the order of the transactions that write to them.
    await run(database, `lock table ${tables().join(", ")} in access exclusive mode`);
    await sumAllAccounts(database);
    for (const table of tables()) await partition(database, table);
  },
};

/** The first version that detaches partitions concurrently. */
const OLDEST = 14;

async function checkVersion(database: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ version: number }>`
    select current_setting('server_version_num')::int / 10000 as version`.execute(database);
  const version = rows[0]?.version;
  if (version !== undefined && version < OLDEST)
    throw new StoreError(
      `This is PostgreSQL ${version}, and Parley needs version ${OLDEST} or newer: update the server.`,
    );
}

/** Writes the sums of all accounts of each hour. */
async function sumAllAccounts(database: Kysely<unknown>): Promise<void> {
  const sums = `completions, partial, estimated, prompt_tokens, cached_tokens, completion_tokens, reasoning_tokens, image_tokens,
    cost_micro_usd, own_cost_micro_usd`;
  await run(
    database,
    `insert into usage_hours (hour_ms, account_id, key_id, model, outcome, ${sums})
    select hour_ms, '', '', model, outcome, ${sums.replaceAll(/\w+/g, "sum($&)")} from usage_hours group by hour_ms, model, outcome`,
  );
}

function tables(): MonthlyTable[] {
  return Object.keys(MONTHLY_TABLES) as MonthlyTable[];
}

/**
 * Gives a table what it needs to become a partition without being read while it is locked: the index of the new primary key, and
 * a valid constraint with the partition's end, which it returns; undefined for a table without rows. Reads the table twice. May be
 * repeated.
 */
async function makeAttachable(
  database: Kysely<unknown>,
  table: MonthlyTable,
  { concurrently }: { readonly concurrently: boolean },
): Promise<number | undefined> {
  if (await isEmpty(database, table)) return undefined;
  const index = `${table}_month_key`;
  const { rows: broken } = await sql`
    select 1 from pg_index where indexrelid = to_regclass(${index}) and not indisvalid`.execute(database);
  if (broken.length > 0) await run(database, `drop index ${index}`);
  await run(
    database,
    `create unique index ${concurrently ? "concurrently" : ""} if not exists ${index} on ${table} (${KEYS[table]})`,
  );
  const constraint = `${table}_before`;
  let endMs = await readEnd(database, table);
  if (endMs === undefined) {
    const column = MONTHLY_TABLES[table];
    const { rows } = await sql<{ latest: number }>`
      select greatest((extract(epoch from now()) * 1000)::bigint, max(${sql.ref(column)})) as latest
      from ${sql.table(table)}`.execute(database);
    // A day later, so that rows are still accepted when the month ends before the tables are exchanged.
    endMs = monthAt(rows[0]!.latest + DAY_MS).toMs;
    await run(database, `alter table ${table} add constraint ${constraint} check (${column} < ${endMs}) not valid`);
  }
  await run(database, `alter table ${table} validate constraint ${constraint}`);
  return endMs;
}

/** Whether there are no rows to keep: no table, an empty one, or one that is partitioned already. */
async function isEmpty(database: Kysely<unknown>, table: MonthlyTable): Promise<boolean> {
  const { rows: found } = await sql`
    select 1 from pg_class where oid = to_regclass(${table}) and relkind = 'r'`.execute(database);
  if (found.length === 0) return true;
  return (await sql`select 1 from ${sql.table(table)} limit 1`.execute(database)).rows.length === 0;
}

/** End of the partition that the existing rows become, by the table's constraint. */
async function readEnd(database: Kysely<unknown>, table: string): Promise<number | undefined> {
  const { rows } = await sql<{ bound: string }>`
    select substring(pg_get_constraintdef(oid) from '\\d{12,}') as bound from pg_constraint
    where conrelid = to_regclass(${table}) and conname = ${`${table}_before`}`.execute(database);
  return rows[0] && Number(rows[0].bound);
}

/** Exchanges a table for a partitioned one. Locks it for milliseconds if `makeAttachable` has run before. */
async function partition(database: Kysely<unknown>, table: MonthlyTable): Promise<void> {
  const endMs = await makeAttachable(database, table, { concurrently: false });
  const isNew = endMs === undefined;
  const earlier = earlierOf(table);
  await run(database, `alter table ${table} rename to ${earlier}`);
  for (const name of Object.keys(INDEXES[table]))
    await run(database, `alter index ${table}_${name} rename to ${earlier}_${name}`);
  const key = table === "completions" ? "completions_pkey" : "usage_hours_primary";
  if (isNew) await run(database, `alter table ${earlier} drop constraint ${key}`);
  else
    await run(
      database,
      `alter table ${earlier} drop constraint ${key},
        add constraint ${earlier}_pkey primary key using index ${table}_month_key`,
    );
  const column = MONTHLY_TABLES[table];
  await run(database, `create table ${table} (like ${earlier} including defaults) partition by range (${column})`);
  await run(database, `alter table ${table} add constraint ${table}_pkey primary key (${KEYS[table]})`);
  for (const [name, columns] of Object.entries(INDEXES[table]))
    await run(database, `create index ${table}_${name} on ${table} (${columns})`);
  if (isNew) return run(database, `drop table ${earlier}`);
  await run(database, `alter table ${table} attach partition ${earlier} for values from (minvalue) to (${endMs})`);
  await run(database, `alter table ${earlier} drop constraint ${table}_before`);
}

async function run(database: Kysely<unknown>, statement: string): Promise<void> {
  await sql.raw(statement).execute(database);
}
