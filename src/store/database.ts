import { closeSync, existsSync, mkdirSync, openSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { Kysely, type RawBuilder, sql, type Transaction } from "kysely";
import { checkPostgresUrl, describePostgresUrl, type PoolOptions } from "./postgres/pool.ts";
import type { Schema } from "./schema.ts";
import { SqliteThreadDialect } from "./sqlite/dialect.ts";
import { retryWhileBusy } from "./store-error.ts";
import type { Perform } from "./transactions.ts";

/** An open database of either kind. */
export class Database {
  readonly kind: "sqlite" | "postgres";
  /** For statements that stand alone, inside `retryWhileBusy` when they write. */
  readonly query: Kysely<Schema>;

  /** Runs one of the transactions that have a name, and again when another process was in its way. */
  readonly perform: Perform;

  /** Whether the last statement reached the server. SQLite has none that could be away. */
  readonly isUp: () => boolean;

  constructor(
    kind: "sqlite" | "postgres",
    query: Kysely<Schema>,
    { perform, isUp = () => true }: { readonly perform: Perform; readonly isUp?: () => boolean },
  ) {
    this.kind = kind;
    this.query = query;
    this.isUp = isUp;
    this.perform = (name, input) => retryWhileBusy(() => perform(name, input));
  }

  /**
   * Runs the work in one transaction, and again when another process was in its way. On SQLite nobody else writes
   * meanwhile.
   */
  transaction<T>(work: (transaction: Transaction<Schema>) => Promise<T>): Promise<T> {
    return retryWhileBusy(() => this.query.transaction().execute(work));
  }

  /** The time that all who share the database agree on, in Unix milliseconds: the server's clock, or the machine's. */
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
 * Keeps the rows of a query for this transaction, in the order in which the query names them. SQLite has no words for it:
 * its transactions have the whole file to themselves.
 */
export function lockRows<Q extends Lockable>({ kind }: Pick<Database, "kind">, query: Q): Q {
  return kind === "postgres" ? query.forUpdate() : query;
}

/** Keeps the rows of a query that nobody else keeps, and waits for none: whoever has the others looks after them. */
export function skipLocked<Q extends Lockable>({ kind }: Pick<Database, "kind">, query: Q): Q {
  return kind === "postgres" ? query.forUpdate().skipLocked() : query;
}

/**
 * A column to order by, as our own sorting would: PostgreSQL orders by the language of the database, and rows that are
 * locked in two orders end in a deadlock.
 */
export function inCodeUnits({ kind }: Pick<Database, "kind">, column: string): RawBuilder<unknown> {
  return kind === "postgres" ? sql`${sql.ref(column)} collate "C"` : sql`${sql.ref(column)}`;
}

/** Where the database is. */
export interface DatabaseLocation {
  readonly dataDir: string;
  /** Of a PostgreSQL database; undefined for SQLite in the data directory. Holds a password. */
  readonly databaseUrl: string | undefined;
}

const FILE_NAME = "parley.db";

/** How long a statement may take before the disk is taken for stuck. */
const SQLITE_LIMIT_MS = 10_000;

/** How many connections of PostgreSQL there are for completions and all else that is short, and how many for reports. */
const CONNECTIONS = { usual: 10, reports: 3 } as const;

/** The SQLite file of a data directory. */
export function sqliteFile(dataDir: string): string {
  return join(dataDir, FILE_NAME);
}

/** What people know the database by, without secrets. Throws a StoreError when its address is none. */
export function describeLocation({ dataDir, databaseUrl }: DatabaseLocation): string {
  if (databaseUrl === undefined) return sqliteFile(dataDir);
  checkPostgresUrl(databaseUrl);
  return describePostgresUrl(databaseUrl);
}

/** Connects to the database, which has still to be migrated. SQLite's file and its directory are made when missing. */
export async function connect({ dataDir, databaseUrl }: DatabaseLocation): Promise<Database> {
  if (databaseUrl !== undefined) return connectPostgres(databaseUrl, { limited: true, connections: CONNECTIONS.usual });
  const file = sqliteFile(dataDir);
  createPrivately(dataDir, file);
  return connectSqlite(file, SQLITE_LIMIT_MS);
}

/** The same database for reading much: on connections of its own, so that completions wait for none of it. */
export async function connectReports(location: DatabaseLocation): Promise<Database> {
  const { databaseUrl } = location;
  if (databaseUrl === undefined) return connect(location);
  return connectPostgres(databaseUrl, { limited: true, connections: CONNECTIONS.reports });
}

/** The same database on a connection of its own, where statements may take as long as they need. */
export async function connectUnlimited({ dataDir, databaseUrl }: DatabaseLocation): Promise<Database> {
  if (databaseUrl !== undefined)
    return connectPostgres(databaseUrl, { limited: false, connections: CONNECTIONS.usual });
  return connectSqlite(sqliteFile(dataDir), undefined);
}

async function connectPostgres(url: string, options: Omit<PoolOptions, "url">): Promise<Database> {
  checkPostgresUrl(url);
  // Loaded only where there is one.
  const postgres = await import("./postgres/connect.ts");
  return postgres.connectPostgres({ url, ...options });
}

function connectSqlite(file: string, limitMs: number | undefined): Database {
  const dialect = new SqliteThreadDialect({ file, limitMs });
  return new Database("sqlite", new Kysely({ dialect }), {
    perform: (name, input) => dialect.perform(name, input),
  });
}

/** SQLite would make the file readable for everybody; its companions (-wal, -shm) take over the file's mode. */
function createPrivately(dataDir: string, file: string): void {
  // Below a file system that makes no directories, such as /proc, Node's recursive way does not come to an end.
  if (existsSync(dirname(dataDir))) makeDirectory(dataDir);
  else mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  closeSync(openSync(file, "a", 0o600));
}

/** Also when another process makes it at the same moment. */
function makeDirectory(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if (!existsSync(path) || !statSync(path).isDirectory()) throw error;
  }
}
