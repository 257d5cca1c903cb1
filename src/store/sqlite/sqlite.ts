import { DatabaseSync } from "node:sqlite";
import { addPercentiles } from "./percentiles.ts";

/**
 * How long SQLite itself waits for another process's lock. Reads wait behind it, so the patience is elsewhere: see
 * `retryWhileBusy`.
 */
const BUSY_TIMEOUT_MS = 5;

/** Opens a SQLite file the way we want it: readers never wait for writers, and what is committed survives a power cut. */
export function openSqlite(file: string): DatabaseSync {
  const database = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS, enableForeignKeyConstraints: true });
  try {
    database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
    addPercentiles(database);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}
