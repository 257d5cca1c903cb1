import { setTimeout as delay } from "node:timers/promises";

/** The database cannot be used. The message tells the operator what to do. */
export class StoreError extends Error {
  override readonly name = "StoreError";
}

/** The database's server is unavailable, or not yet in use: it may answer later without a change of the configuration. */
export class UnreachableError extends StoreError {
  /** For `Failure.from`. */
  readonly isUnreachable = true;
}

/** A statement has exceeded its time limit: it reads too much. `isTimeLimit` is for the dashboard's reports. */
export class TimeLimitError extends StoreError {
  readonly isTimeLimit = true;
}

/** SQLite's code for a lock held by another process; extended codes have it in their low byte. */
const SQLITE_BUSY = 5;

/** PostgreSQL's codes for conflicts with another transaction: serialization failure and deadlock. */
const POSTGRES_BUSY = new Set(["40001", "40P01"]);

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

/** Whether a table is missing, as before its migration. */
export function isMissingTable(error: unknown): boolean {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  return code === "42P01" || (typeof message === "string" && message.startsWith("no such table"));
}

/** Whether a lock of PostgreSQL was waited for longer than `lock_timeout`. */
export function isLockTimeout(error: unknown): boolean {
  return (error as { code?: unknown } | undefined)?.code === "55P03";
}

/** Whether the operation was in conflict with another process, and may be repeated. */
export function isBusy(error: unknown): boolean {
  const { errcode, code } = (error ?? {}) as { errcode?: unknown; code?: unknown };
  if (typeof errcode === "number") return (errcode & 0xff) === SQLITE_BUSY;
  return typeof code === "string" && POSTGRES_BUSY.has(code);
}
