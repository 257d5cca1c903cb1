import { closeSync, existsSync, mkdirSync, openSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { Kysely } from "kysely";
import { Database } from "./database.ts";
import type { PoolOptions } from "./postgres/pool.ts";
import { checkPostgresUrl, describePostgresUrl } from "./postgres/url.ts";
import { SqliteThreadDialect } from "./sqlite/dialect.ts";

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
