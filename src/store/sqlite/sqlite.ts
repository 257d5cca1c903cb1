import { DatabaseSync } from "node:sqlite";
import { addPercentiles } from "./percentiles.ts";

/**
 * Time that SQLite itself waits for another process's lock. Short, because reads wait behind it; the retries are in
 * `retryWhileBusy`.
 */
const BUSY_TIMEOUT_MS = 5;

/** Commits wait for the disk: they survive a power cut. */
export const SYNCED_COMMITS = "PRAGMA synchronous = FULL";
/** Commits survive the end of the process only. */
export const UNSYNCED_COMMITS = "PRAGMA synchronous = NORMAL";

/**
 * Opens a SQLite file in WAL mode (readers never wait for writers) with full synchronisation (commits survive a power cut).
 */
export function openSqlite(file: string): DatabaseSync {
  const database = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS, enableForeignKeyConstraints: true });
  try {
    database.exec(`PRAGMA journal_mode = WAL; ${SYNCED_COMMITS}`);
    addPercentiles(database);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}
