import { closeSync, existsSync, mkdirSync, openSync } from "node:fs";
import { dirname, join } from "node:path";
import { Kysely, SqliteDialect } from "kysely";
import type { KeyStore } from "../access/key-store.ts";
import { retryWhileBusy } from "./busy.ts";
import { createKeyStore } from "./key-store.ts";
import { migrate } from "./migrate.ts";
import type { Schema } from "./schema.ts";
import { openSqlite, toKyselyDatabase } from "./sqlite.ts";
import { StoreError } from "./store-error.ts";

/** The database of one process, open and up to date. */
export interface Store {
  readonly keys: KeyStore;
  close(): Promise<void>;
}

const FILE_NAME = "parley.db";

/**
 * Opens the database `parley.db` in the data directory, making both when they are missing (readable for this user only),
 * and migrates it. Several processes may have it open. Throws a StoreError that says what to do.
 */
export async function openStore(dataDir: string): Promise<Store> {
  const file = join(dataDir, FILE_NAME);
  try {
    createPrivately(dataDir, file);
    const sqlite = await retryWhileBusy(() => openSqlite(file));
    const database = new Kysely<Schema>({ dialect: new SqliteDialect({ database: toKyselyDatabase(sqlite) }) });
    try {
      await retryWhileBusy(() => migrate(database as unknown as Kysely<unknown>));
    } catch (error) {
      await database.destroy();
      throw error;
    }
    return { keys: createKeyStore(database), close: () => database.destroy() };
  } catch (error) {
    if (error instanceof StoreError) throw new StoreError(`${file}: ${error.message}`, { cause: error });
    throw new StoreError(`${file} cannot be opened: ${describe(error)}`, { cause: error });
  }
}

/** SQLite would make the file readable for everybody; its companions (-wal, -shm) take over the file's mode. */
function createPrivately(dataDir: string, file: string): void {
  // Below a file system that makes no directories, such as /proc, Node's recursive way does not come to an end.
  if (existsSync(dirname(dataDir))) makeDirectory(dataDir);
  else mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  closeSync(openSync(file, "a", 0o600));
}

function makeDirectory(path: string): void {
  if (!existsSync(path)) mkdirSync(path, { mode: 0o700 });
}

const REASONS: Readonly<Record<string, string>> = {
  EACCES: "this user may not write there; change its owner or choose another data_dir",
  EEXIST: "the data_dir is not a directory",
  EISDIR: "it is a directory",
  ENOENT: "no directory can be made there; choose another data_dir",
  ENOSPC: "the disk is full",
  ENOTDIR: "the data_dir is not a directory",
  EPERM: "this user may not write there; change its owner or choose another data_dir",
  EROFS: "the file system is read-only; choose another data_dir",
};

function describe(error: unknown): string {
  const { code, errstr } = error as { code?: string; errstr?: string };
  return REASONS[code ?? ""] ?? errstr ?? code ?? "unknown reason";
}
