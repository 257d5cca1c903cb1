import { setTimeout as delay } from "node:timers/promises";
import { type Kysely, sql, type Transaction } from "kysely";
import { PROCESS_LEASE_MS } from "../ledger/ledger-store.ts";
import type { Database } from "./database.ts";
import { type Migration, MIGRATIONS } from "./migrations.ts";
import type { Schema } from "./schema.ts";
import { isBusy, isLockTimeout, retryWhileBusy, StoreError } from "./store-error.ts";

/** Versions of a database, as numbers of applied migrations: before and after. */
export interface MigrationResult {
  readonly before: number;
  readonly after: number;
}

/** Versions that a database has recorded. */
export interface SchemaVersion {
  /** Number of applied migrations; 0 for a new database. */
  readonly version: number;
  /**
   * Programs that know at least this version can use the database, also if they do not know its own. Undefined if that is not
   * recorded: then they have to know its own.
   */
  readonly usableFrom: number | undefined;
}

interface VersionTable {
  readonly parley_schema: { readonly version: number; readonly usable_from?: number };
}

/** Number of PostgreSQL's advisory lock for migrations. */
const LOCK_NUMBER = 7_165_421;
/** Limit for waiting for another process's migration, for locks of tables, and for processes that have to end first. */
const WAIT_MS = 60_000;
/**
 * Limit for the lock of one table. Other statements on the table queue behind the waiting migration, so it is shorter than
 * their own limit; the migration then starts again.
 */
const TABLE_LOCK_MS = 500;
const MAX_PAUSE_MS = 2_000;
/** A migration has failed, and the database is as before. */
export class MigrationError extends Error {
  override readonly name = "MigrationError";

  /** `migration`: its number and name. */
  constructor(migration: string, cause: unknown) {
    super(`${migration} has failed, and nothing has changed`, { cause });
  }
}

/** Other processes use the database and would not work with it after the migration. */
class InUseError extends StoreError {}

/**
 * Migrates the database to this program's version, in one transaction that excludes other processes. A newer database that this
 * program can use stays as it is; for another one throws a StoreError. Throws a MigrationError when a migration fails.
 *
 * `connectUnlimited` opens a connection without a limit for statements, for long migrations. `waitMs` is the limit for waiting
 * for other processes.
 */
export async function migrate(
  database: Database,
  connectUnlimited: () => Promise<Database>,
  {
    migrations = MIGRATIONS,
    waitMs = WAIT_MS,
  }: { readonly migrations?: readonly Migration[]; readonly waitMs?: number } = {},
): Promise<MigrationResult> {
  // Usually nothing is to do, and no lock is taken: a short command must not wait for a busy server.
  const found = await retryWhileBusy(() => readSchemaVersion(database.kind, database.query));
  checkUsable(found, migrations.length);
  const before = found.version;
  if (before >= migrations.length) return { before, after: before };
  // A new SQLite database has nothing to convert, and no other process's migration is waited for in a statement.
  const isNewFile = before === 0 && database.kind === "sqlite";
  const connection = isNewFile ? database : await connectUnlimited();
  try {
    return { before, after: await takeStepsWhenFree(connection, { migrations, waitMs }) };
  } finally {
    if (connection !== database) await connection.close();
  }
}

interface Steps {
  readonly migrations: readonly Migration[];
  readonly waitMs: number;
}

/** Takes the steps, again while other processes are in the way; a failed transaction has changed nothing. */
async function takeStepsWhenFree(connection: Database, steps: Steps): Promise<number> {
  const giveUpAtMs = performance.now() + steps.waitMs;
  for (;;) {
    try {
      return await connection.transaction((transaction) => takeSteps(connection, transaction, steps));
    } catch (error) {
      const cause = error instanceof MigrationError ? error.cause : error;
      if (!(error instanceof InUseError || isLockTimeout(cause)) || performance.now() > giveUpAtMs) throw error;
      await delay(Math.min(Math.random() * MAX_PAUSE_MS, steps.waitMs));
    }
  }
}

/** Returns the version of the database afterwards. */
async function takeSteps(
  database: Database,
  transaction: Transaction<Schema>,
  { migrations, waitMs }: Steps,
): Promise<number> {
  const { kind } = database;
  if (kind === "postgres") {
    await sql`select set_config('lock_timeout', ${`${waitMs}ms`}, true)`.execute(transaction);
    await sql`select pg_advisory_xact_lock(${sql.lit(LOCK_NUMBER)})`.execute(transaction);
    await sql`select set_config('lock_timeout', ${`${TABLE_LOCK_MS}ms`}, true)`.execute(transaction);
  }
  const found = await readSchemaVersion(kind, transaction);
  checkUsable(found, migrations.length);
  if (found.version >= migrations.length) return found.version;
  const usableFrom = usableAfter(found, migrations);
  if (found.version > 0 && usableFrom > found.version)
    await refuseWhileUsed(database, transaction, { found, usableFrom });
  for (const [index, migration] of migrations.entries()) {
    if (index < found.version) continue;
    try {
      await migration.up(transaction as unknown as Kysely<unknown>, kind);
    } catch (error) {
      // A conflict with another transaction is repeated by the caller.
      if (isBusy(error)) throw error;
      throw new MigrationError(`migration ${index + 1} (${migration.name})`, error);
    }
  }
  await writeSchemaVersion(transaction, found, { version: migrations.length, usableFrom });
  return migrations.length;
}

/** The oldest version that a program has to know to use the database after these migrations. */
export function usableAfter({ version, usableFrom = 0 }: SchemaVersion, migrations: readonly Migration[]): number {
  return Math.max(usableFrom, ...migrations.slice(version).map((migration) => migration.usableFrom ?? 0));
}

/** Throws an InUseError while processes use the database that do not know the version `usableFrom`. */
async function refuseWhileUsed(
  database: Database,
  transaction: Transaction<Schema>,
  { found, usableFrom }: { readonly found: SchemaVersion; readonly usableFrom: number },
): Promise<void> {
  const processes = await countProcesses(database, transaction);
  if (processes === 0) return;
  throw new InUseError(
    `Version ${found.version} of the database is in use (${processes} ${processes === 1 ? "process" : "processes"}), and programs that ` +
      `do not know version ${usableFrom} would stop working. Update to the release before this one first, or stop all processes, ` +
      `wait ${PROCESS_LEASE_MS / 1000} s and try again.`,
  );
}

/** Processes whose leases have not ended. */
export async function countProcesses(database: Database, query: Kysely<Schema>): Promise<number> {
  if (!(await hasTable(database.kind, query, "replicas"))) return 0;
  const sinceMs = (await database.nowMs(query)) - PROCESS_LEASE_MS;
  const counting = query.selectFrom("replicas").select(({ fn }) => fn.countAll<number>().as("count"));
  return (await counting.where("seen_at_ms", ">=", sinceMs).executeTakeFirstOrThrow()).count;
}

/** Reads the versions that the database has recorded. */
export async function readSchemaVersion(kind: Database["kind"], query: Kysely<Schema>): Promise<SchemaVersion> {
  if (!(await hasTable(kind, query, "parley_schema"))) return { version: 0, usableFrom: undefined };
  const versions = query as unknown as Kysely<VersionTable>;
  const row = await versions.selectFrom("parley_schema").selectAll().executeTakeFirst();
  return { version: row?.version ?? 0, usableFrom: row?.usable_from };
}

async function writeSchemaVersion(
  transaction: Transaction<Schema>,
  found: SchemaVersion,
  { version, usableFrom }: { readonly version: number; readonly usableFrom: number },
): Promise<void> {
  await sql`create table if not exists parley_schema (version integer not null)`.execute(transaction);
  if (found.usableFrom === undefined)
    await sql`alter table parley_schema add column usable_from integer not null default 0`.execute(transaction);
  const versions = transaction as unknown as Kysely<VersionTable>;
  await versions.deleteFrom("parley_schema").execute();
  await versions.insertInto("parley_schema").values({ version, usable_from: usableFrom }).execute();
}

async function hasTable(kind: Database["kind"], query: Kysely<Schema>, name: string): Promise<boolean> {
  const table =
    kind === "postgres"
      ? sql`select 1 where to_regclass(${name}) is not null`
      : sql`select 1 from sqlite_master where type = 'table' and name = ${name}`;
  return (await table.execute(query)).rows.length > 0;
}

/** Throws a StoreError when a program that knows this many migrations cannot use the database. */
function checkUsable({ version, usableFrom = version }: SchemaVersion, known: number): void {
  if (version <= known || usableFrom <= known) return;
  throw new StoreError(
    `The database has version ${version}, this program knows versions up to ${known}. ` +
      (usableFrom < version ? `Programs have to know version ${usableFrom} at least to use it. ` : "") +
      "It was last used by a newer Parley: run that one, or restore a backup from before the update.",
  );
}
