import { setTimeout as delay } from "node:timers/promises";

/** The database cannot be used. The message tells the operator what to do. */
export class StoreError extends Error {
  override readonly name = "StoreError";
}

/** SQLite's code for a lock held by another process. */
const SQLITE_BUSY = 5;

/** PostgreSQL's codes for conflicts with another transaction: serialization failure and deadlock. */
const POSTGRES_BUSY = new Set(["40001", "40P01"]);

/** SQLite's codes for a disk that takes no writes: read-only, I/O error, full. */
const SQLITE_UNWRITABLE = new Set([8, 10, 13]);

/** PostgreSQL's code for a full disk. */
const POSTGRES_FULL = "53100";

const RETRY_LIMIT_MS = 5_000;
const MAX_PAUSE_MS = 60;

/**
 * Repeats the operation while another process conflicts with it. Gives up with a StoreError after RETRY_LIMIT_MS. A failed
 * operation must have changed nothing: it is one statement or a transaction.
 */
export async function retryWhileBusy<T>(operation: () => T | Promise<T>): Promise<T> {
  const giveUpAtMs = performance.now() + RETRY_LIMIT_MS;
  for (;;) {
    try {
      return await operation();
    } catch (error) {
      if (!isBusy(error)) throw error;
      if (performance.now() > giveUpAtMs) {
        throw new StoreError("The database is locked by another process for too long.", { cause: error });
      }
      // Random, so that two processes do not collide again.
      await delay(Math.random() * MAX_PAUSE_MS);
    }
  }
}

/** Whether a write failed because the database's disk is full, read-only or broken. */
export function isUnwritable(error: unknown): boolean {
  const { sqlite, postgres } = codesOf(error);
  return (sqlite !== undefined && SQLITE_UNWRITABLE.has(sqlite)) || postgres === POSTGRES_FULL;
}

function isBusy(error: unknown): boolean {
  const { sqlite, postgres } = codesOf(error);
  return sqlite === SQLITE_BUSY || (postgres !== undefined && POSTGRES_BUSY.has(postgres));
}

/** The code of a database's error. Extended codes of SQLite have the code in their low byte; `code` is then Node's. */
function codesOf(error: unknown): { readonly sqlite?: number; readonly postgres?: string } {
  const { errcode, code } = (error ?? {}) as { errcode?: unknown; code?: unknown };
  if (typeof errcode === "number") return { sqlite: errcode & 0xff };
  return typeof code === "string" ? { postgres: code } : {};
}
