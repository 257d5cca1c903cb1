import { accessSync, closeSync, constants, existsSync, mkdirSync, openSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { Kysely, type RawBuilder, sql, type Transaction } from "kysely";
import { MOST_CONNECTIONS, poolSizes } from "./postgres/connection-share.ts";
import { describePostgresUrl, type PoolOptions, QUERY_MS } from "./postgres/pool.ts";
import type { Schema } from "./schema.ts";
import { SqliteThreadDialect } from "./sqlite/dialect.ts";
import { retryWhileBusy, type StoreError, TimeLimitError } from "./store-error.ts";
import type { Perform } from "./transactions.ts";

/** An open database of either kind. */
export class Database {
  readonly kind: "sqlite" | "postgres";
  /** For single statements, inside `retryWhileBusy` when they write. */
  readonly query: Kysely<Schema>;

  /** Runs a named transaction, again when another process's transaction was in conflict with it. */
  readonly perform: Perform;

  /** Whether the last statement reached the server. Always true for SQLite. */
  readonly isUp: () => boolean;

  /** Changes the largest number of connections. Does nothing for SQLite. */
  readonly resize: (connections: number) => void;

  constructor(
    kind: "sqlite" | "postgres",
    query: Kysely<Schema>,
    {
      perform,
      isUp = () => true,
      resize = () => undefined,
    }: Pick<Database, "perform"> & Partial<Pick<Database, "isUp" | "resize">>,
  ) {
    this.kind = kind;
    this.query = query;
    this.isUp = isUp;
    this.resize = resize;
    this.perform = (name, input) => retryWhileBusy(() => perform(name, input));
  }

  /**
   * Runs the work in one transaction, again when another process's transaction was in conflict with it. On SQLite there is
   * no other writer meanwhile.
   */
  transaction<T>(work: (transaction: Transaction<Schema>) => Promise<T>): Promise<T> {
    return retryWhileBusy(() => this.query.transaction().execute(work));
  }

  /**
   * Time shared by all processes on the database, in Unix milliseconds: the server's clock, or the machine's with SQLite.
   */
  async nowMs(transaction: Kysely<Schema>): Promise<number> {
    if (this.kind === "sqlite") return Date.now();
    const query = sql<{ now: number }>`select (extract(epoch from clock_timestamp()) * 1000)::bigint as now`;
    const { rows } = await query.execute(transaction);
    return rows[0]!.now;
  }

  close(): Promise<void> {
    return this.query.destroy();
  }
}

interface Lockable {
  forUpdate(): this;
  skipLocked(): this;
}

/**
 * Locks the rows of a query for this transaction, in the query's order. Not needed on SQLite, whose write transactions lock
 * the whole file.
 */
export function lockRows<Q extends Lockable>({ kind }: Pick<Database, "kind">, query: Q): Q {
  return kind === "postgres" ? query.forUpdate() : query;
}

/** Locks the rows of a query that no other transaction has locked, without waiting for the others. */
export function skipLocked<Q extends Lockable>({ kind }: Pick<Database, "kind">, query: Q): Q {
  return kind === "postgres" ? query.forUpdate().skipLocked() : query;
}

/**
 * A column to sort by in code units, as `compare` does: PostgreSQL would sort by the database's collation, and rows locked
 * in two orders can deadlock.
 */
export function inCodeUnits({ kind }: Pick<Database, "kind">, column: string): RawBuilder<unknown> {
  return kind === "postgres" ? sql`${sql.ref(column)} collate "C"` : sql`${sql.ref(column)}`;
}

/** Location of the database. */
export interface DatabaseLocation {
  readonly dataDir: string;
  /** Address of a PostgreSQL database; undefined for SQLite in the data directory. Holds a password. */
  readonly databaseUrl: string | undefined;
  /** Address for LISTEN beside a pooler, or `none` for no LISTEN. Default: `databaseUrl`. */
  readonly databaseListenUrl?: string | undefined;
  /** Address of a PostgreSQL read replica for reports. Default: none. Holds a password. */
  readonly databaseReadUrl?: string | undefined;
  /** Largest number of PostgreSQL connections of this process. Default: its share of the server's. */
  readonly databaseConnections?: number | undefined;
  /** Why PostgreSQL may not be used yet, as it is not known to have the program's schema. Default: it may. */
  readonly closedBy?: (() => StoreError | undefined) | undefined;
}

const FILE_NAME = "parley.db";

/** Limit for a statement, after which the disk counts as stuck. */
const SQLITE_LIMIT_MS = 10_000;

/** The SQLite file of a data directory. */
export function sqliteFile(dataDir: string): string {
  return join(dataDir, FILE_NAME);
}

/** Describes the location for people, without secrets. Throws a StoreError for an invalid address. */
export function describeLocation({ dataDir, databaseUrl }: DatabaseLocation): string {
  if (databaseUrl === undefined) return sqliteFile(dataDir);
  return describePostgresUrl(databaseUrl);
}

/** Connects to the database, which may still have to be migrated. Creates SQLite's file and directory when missing. */
export async function connect(location: DatabaseLocation): Promise<Database> {
  const { dataDir, databaseUrl, closedBy } = location;
  if (databaseUrl !== undefined)
    return connectPostgres(databaseUrl, { limitMs: QUERY_MS, connections: firstSizes(location).usual, closedBy });
  const file = sqliteFile(dataDir);
  createPrivately(dataDir, file);
  return connectSqlite(file, SQLITE_LIMIT_MS);
}

/** Connects to a database that exists for reports: with connections of their own, so that completions do not wait for them. */
export async function connectReports(location: DatabaseLocation): Promise<Database> {
  const { dataDir, databaseUrl } = location;
  if (databaseUrl === undefined) return connectSqlite(sqliteFile(dataDir), SQLITE_LIMIT_MS, reportTooLarge);
  return connectForReads(databaseUrl, { ...location, limitMs: QUERY_MS, connections: firstSizes(location).reports });
}

function reportTooLarge(): TimeLimitError {
  return new TimeLimitError("A statement of a report took longer than it may: it reads too much at once.");
}

/** Limit for a statement that adds up all rows of a day. */
const RANKING_MS = 60_000;

/** Connects to the database of the reports for such statements: with one connection of its own, so that reports do not wait for it. */
export async function connectRanking(location: DatabaseLocation): Promise<Database> {
  const { dataDir, databaseUrl } = location;
  if (databaseUrl === undefined) return connectSqlite(sqliteFile(dataDir), RANKING_MS, reportTooLarge);
  return connectForReads(databaseUrl, { ...location, limitMs: RANKING_MS, connections: 1 });
}

/** Connects to the read replica, or else to PostgreSQL itself. */
async function connectForReads(
  url: string,
  { databaseReadUrl, limitMs, connections, closedBy }: DatabaseLocation & Omit<PoolOptions, "url">,
): Promise<Database> {
  const options = { limitMs, connections, limitsEach: true, closedBy };
  if (databaseReadUrl === undefined) return connectPostgres(url, options);
  const postgres = await import("./postgres/connect.ts");
  return postgres.connectFreshReplica({ url, ...options }, databaseReadUrl);
}

/**
 * The connection for stored responses, which may be large: one of their own with SQLite, so that completions do not wait for them;
 * `database` with PostgreSQL, which has several.
 */
export function connectResponses({ dataDir }: DatabaseLocation, database: Database): Database {
  return database.kind === "sqlite" ? connectSqlite(sqliteFile(dataDir), SQLITE_LIMIT_MS) : database;
}

/** Sizes of the pools until the server has given the share of this process. */
function firstSizes({ databaseConnections = MOST_CONNECTIONS }: DatabaseLocation): ReturnType<typeof poolSizes> {
  return poolSizes(databaseConnections);
}

/** One connection for the work, one for a lock meanwhile. */
const UNLIMITED_CONNECTIONS = 2;

/** Connects without a limit for statements. */
export async function connectUnlimited({ dataDir, databaseUrl }: DatabaseLocation): Promise<Database> {
  if (databaseUrl !== undefined)
    return connectPostgres(databaseUrl, { limitMs: undefined, connections: UNLIMITED_CONNECTIONS });
  return connectSqlite(sqliteFile(dataDir), undefined);
}

/** Limit for a statement that waits until no transaction uses a partition. */
const MAINTENANCE_MS = 60_000;

/** Connects to PostgreSQL for statements that wait for other transactions. */
export function connectMaintenance(databaseUrl: string): Promise<Database> {
  return connectPostgres(databaseUrl, { limitMs: MAINTENANCE_MS, connections: 1 });
}

async function connectPostgres(url: string, options: Omit<PoolOptions, "url">): Promise<Database> {
  // Imported only where PostgreSQL is used.
  const postgres = await import("./postgres/connect.ts");
  return postgres.connectPostgres({ url, ...options });
}

function connectSqlite(file: string, limitMs: number | undefined, overTime?: () => StoreError): Database {
  const dialect = new SqliteThreadDialect({ file, limitMs, overTime });
  return new Database("sqlite", new Kysely({ dialect }), {
    perform: (name, input) => dialect.perform(name, input),
  });
}

/**
 * Creates the file when it is missing, because SQLite would make it readable for everyone; -wal and -shm get the same mode. An
 * existing file is not opened: closing it would drop the locks of all connections that this process has to it (POSIX), and
 * another program could then delete the write-ahead log that they write to.
 */
export function createPrivately(dataDir: string, file: string): void {
  // In a file system without mkdir, such as /proc, Node's recursive mkdir never returns.
  if (existsSync(dirname(dataDir))) makeDirectory(dataDir);
  else mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  if (existsSync(file)) accessSync(file, constants.R_OK | constants.W_OK);
  else closeSync(openSync(file, "a", 0o600));
}

/** Creates a directory; another process may create it at the same moment. */
function makeDirectory(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if (!existsSync(path) || !statSync(path).isDirectory()) throw error;
  }
}
