import { setTimeout as delay } from "node:timers/promises";
import { type Kysely, sql, type Transaction } from "kysely";
import type { Database } from "./database.ts";
import { type Migration, MIGRATIONS } from "./migrations.ts";
import type { Schema } from "./schema.ts";
import { retryWhileBusy, StoreError } from "./store-error.ts";

/** Versions of a database, as numbers of applied migrations: before and after. */
export interface MigrationResult {
  readonly before: number;
  readonly after: number;
}

interface VersionTable {
  readonly parley_schema: { readonly version: number };
}

/** Number of PostgreSQL's advisory lock for migrations. */
const LOCK_NUMBER = 7_165_421;
/** Number of the advisory lock for what migrations prepare. */
const PREPARE_LOCK_NUMBER = 7_165_423;
/** Limit for waiting for another process's migration. */
const LOCK_TIMEOUT = "60s";
const PREPARE_POLL_MS = 200;
/** Limit for waiting for another process to prepare migrations, which takes longer the more entries there are. */
const PREPARE_WAIT_MS = 600_000;

/**
 * Migrates the database to this program's version, in one transaction that excludes other processes. When the database is
 * newer than the program, throws a StoreError and changes nothing.
 *
 * `connectUnlimited` opens a connection without a limit for statements, for long migrations.
 */
export async function migrate(
  database: Database,
  connectUnlimited: () => Promise<Database>,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<MigrationResult> {
  // Usually nothing is to do, and no lock is taken: a short command must not wait for a busy server.
  const before = await retryWhileBusy(() => readVersion(database.kind, database.query));
  if (checkVersion(before, migrations.length) === migrations.length) return { before, after: before };
  // A new SQLite database has nothing to convert, and no other process's migration is waited for in a statement.
  const isNewFile = before === 0 && database.kind === "sqlite";
  const connection = isNewFile ? database : await connectUnlimited();
  try {
    if (before > 0) await prepare(connection, migrations);
    await connection.transaction((transaction) => takeSteps(connection.kind, transaction, migrations));
  } finally {
    if (connection !== database) await connection.close();
  }
  return { before, after: migrations.length };
}

/**
 * Prepares the migrations that are to come, in one process at a time. The others ask for the lock again and again: a statement
 * that waits for it would keep PostgreSQL from building an index concurrently.
 */
async function prepare(connection: Database, migrations: readonly Migration[]): Promise<void> {
  const giveUpAtMs = performance.now() + PREPARE_WAIT_MS;
  const work = async (): Promise<void> => {
    const version = await readVersion(connection.kind, connection.query);
    for (const migration of migrations.slice(version))
      await migration.prepare?.(connection.query as unknown as Kysely<unknown>, connection.kind);
  };
  if (connection.kind === "sqlite") return work();
  while (!(await alone(connection, work))) {
    if (performance.now() > giveUpAtMs)
      throw new StoreError("Another process has been preparing a migration for ten minutes.");
    await delay(PREPARE_POLL_MS);
  }
}

/** Does the work, on other connections, while a transaction has the lock. Answers whether it got it. */
function alone(connection: Database, work: () => Promise<void>): Promise<boolean> {
  return connection.query.transaction().execute(async (transaction) => {
    const lock = sql<{ taken: boolean }>`select pg_try_advisory_xact_lock(${sql.lit(PREPARE_LOCK_NUMBER)}) as taken`;
    const taken = (await lock.execute(transaction)).rows[0]!.taken;
    if (taken) await work();
    return taken;
  });
}

async function takeSteps(
  kind: Database["kind"],
  transaction: Transaction<Schema>,
  migrations: readonly Migration[],
): Promise<void> {
  if (kind === "postgres") {
    await sql`select set_config('lock_timeout', ${LOCK_TIMEOUT}, true)`.execute(transaction);
    await sql`select pg_advisory_xact_lock(${sql.lit(LOCK_NUMBER)})`.execute(transaction);
  }
  const versions = transaction as unknown as Kysely<VersionTable>;
  const version = checkVersion(await readVersion(kind, transaction), migrations.length);
  for (const migration of migrations.slice(version))
    await migration.up(transaction as unknown as Kysely<unknown>, kind);
  await sql`create table if not exists parley_schema (version integer not null)`.execute(transaction);
  await versions.deleteFrom("parley_schema").execute();
  await versions.insertInto("parley_schema").values({ version: migrations.length }).execute();
}

/** Number of applied migrations; 0 for a new database. */
async function readVersion(kind: Database["kind"], query: Kysely<Schema>): Promise<number> {
  const table =
    kind === "postgres"
      ? sql`select 1 where to_regclass('parley_schema') is not null`
      : sql`select 1 from sqlite_master where type = 'table' and name = 'parley_schema'`;
  if ((await table.execute(query)).rows.length === 0) return 0;
  const versions = query as unknown as Kysely<VersionTable>;
  return (await versions.selectFrom("parley_schema").select("version").executeTakeFirst())?.version ?? 0;
}

function checkVersion(version: number, known: number): number {
  if (version <= known) return version;
  throw new StoreError(
    `The database has version ${version}, this program knows versions up to ${known}. ` +
      "It was last used by a newer Parley: run that one, or restore a backup from before the update.",
  );
}
