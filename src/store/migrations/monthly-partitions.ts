import { type Kysely, sql } from "kysely";
import type { Migration } from "../migrations.ts";
import { StoreError } from "../store-error.ts";
import { boundOf, earlierOf, MONTHLY_TABLES, PARTITIONED_TABLES, periodAt } from "../postgres/partitions.ts";

const DAY_MS = 86_400_000;

type MonthlyTable = (typeof MONTHLY_TABLES)[number];

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
 * rows stay in their table, which becomes the partition of all times before the month after this one. Earlier programs cannot write
 * to the partitions, and would count the sums of all accounts twice.
 */
export const monthlyPartitions: Migration = {
  name: "a partition for each month of the ledger in PostgreSQL, and the usage of all accounts",
  usableFrom: 23,

  async up(database, kind) {
    if (kind === "sqlite") return sumAllAccounts(database);
    await checkVersion(database);
    // All at first, and in the order of the transactions that write to them.
    await run(database, `lock table ${MONTHLY_TABLES.join(", ")} in access exclusive mode`);
    await sumAllAccounts(database);
    for (const table of MONTHLY_TABLES) await partition(database, table);
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

/** End of the partition that the existing rows become: of the month after the latest of them, and after now. Undefined without rows. */
async function endOf(database: Kysely<unknown>, table: MonthlyTable): Promise<number | undefined> {
  const { rows } = await sql<{ latest: number | null; now: number }>`
    select max(${sql.ref(PARTITIONED_TABLES[table].column)}) as latest, (extract(epoch from now()) * 1000)::bigint as now
    from ${sql.table(table)}`.execute(database);
  const { latest, now } = rows[0] ?? { latest: null, now: 0 };
  return latest === null ? undefined : periodAt(table, Math.max(latest, now) + DAY_MS).toMs;
}

/** Exchanges a table for a partitioned one. */
async function partition(database: Kysely<unknown>, table: MonthlyTable): Promise<void> {
  const endMs = await endOf(database, table);
  const earlier = earlierOf(table);
  await run(database, `alter table ${table} rename to ${earlier}`);
  for (const name of Object.keys(INDEXES[table]))
    await run(database, `alter index ${table}_${name} rename to ${earlier}_${name}`);
  const key = table === "completions" ? "completions_pkey" : "usage_hours_primary";
  await run(database, `alter table ${earlier} drop constraint ${key}`);
  const { column } = PARTITIONED_TABLES[table];
  await run(database, `create table ${table} (like ${earlier} including defaults) partition by range (${column})`);
  await run(database, `alter table ${table} add constraint ${table}_pkey primary key (${KEYS[table]})`);
  for (const [name, columns] of Object.entries(INDEXES[table]))
    await run(database, `create index ${table}_${name} on ${table} (${columns})`);
  if (endMs === undefined) return run(database, `drop table ${earlier}`);
  await run(database, `alter table ${earlier} add constraint ${earlier}_pkey primary key (${KEYS[table]})`);
  await run(
    database,
    `alter table ${table} attach partition ${earlier} for values from (minvalue) to (${boundOf(endMs)})`,
  );
}

async function run(database: Kysely<unknown>, statement: string): Promise<void> {
  await sql.raw(statement).execute(database);
}
