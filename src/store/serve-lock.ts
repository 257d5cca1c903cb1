import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createPrivately } from "./database.ts";
import { explainOpening } from "./open-database.ts";
import { isBusy, StoreError } from "./store-error.ts";

/**
 * A file of SQLite's beside the database, because Node has no locks of files. Only SQLite opens it: closing it by other
 * means drops the locks that this process has on it (POSIX).
 */
const FILE_NAME = "serve.lock";

/**
 * Locks a data directory for the one process that serves its SQLite database: two would count rates and concurrency each for
 * itself. Commands beside it do not need the lock. It ends with the process, however that ends. Throws a StoreError that
 * names the process that has it. Returns the function that releases it.
 */
export function lockForServing(dataDir: string): () => void {
  const file = join(dataDir, FILE_NAME);
  try {
    createPrivately(dataDir, file);
    const lock = new DatabaseSync(file, { timeout: 0 });
    try {
      // A write transaction keeps out others, which can still read what was committed: the process that has the lock.
      lock.exec(`BEGIN IMMEDIATE; PRAGMA user_version = ${process.pid}; COMMIT; BEGIN IMMEDIATE`);
    } catch (error) {
      const holder = isBusy(error) ? Number(lock.prepare("PRAGMA user_version").get()?.["user_version"]) : undefined;
      lock.close();
      throw holder === undefined ? error : taken(dataDir, holder);
    }
    return () => lock.close();
  } catch (error) {
    throw error instanceof StoreError ? error : explainOpening(file, error);
  }
}

function taken(dataDir: string, holder: number): StoreError {
  const who = holder === 0 || holder === process.pid ? "another process" : `process ${holder}`;
  return new StoreError(
    `${who} already serves the data directory ${dataDir}: end it first, choose another data_dir, or set database.url, with which several processes share their limits`,
  );
}
