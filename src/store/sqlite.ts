import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import type { SqliteDatabase } from "kysely";

/**
 * How long SQLite itself waits for another process's lock. It waits on this thread, with every request of the process
 * behind it, so the patience is elsewhere: see `retryWhileBusy`.
 */
const BUSY_TIMEOUT_MS = 50;

/** Opens a SQLite file the way we want it: readers never wait for writers, and what is committed survives a power cut. */
export function openSqlite(file: string): DatabaseSync {
  const database = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS, enableForeignKeyConstraints: true });
  try {
    database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** What Kysely's SQLite dialect asks of a driver, on the database that is built into Node. */
export function toKyselyDatabase(database: DatabaseSync): SqliteDatabase {
  return {
    close: () => database.close(),
    prepare(sql) {
      // A plain "begin" takes the write lock at the first write, when it is too late to wait for it.
      const statement = database.prepare(sql === "begin" ? "begin immediate" : sql);
      return {
        reader: statement.columns().length > 0,
        all: (parameters) => statement.all(...(parameters as SQLInputValue[])),
        run: (parameters) => statement.run(...(parameters as SQLInputValue[])),
        iterate: (parameters) => statement.iterate(...(parameters as SQLInputValue[])),
      };
    },
  };
}
