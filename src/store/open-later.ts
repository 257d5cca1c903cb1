import { setTimeout as delay } from "node:timers/promises";
import { MIGRATIONS } from "./migrations.ts";
import type { Database, DatabaseLocation } from "./database.ts";
import { connect } from "./database.ts";
import type { MigrationResult } from "./migrate.ts";
import { openDatabase } from "./open-database.ts";
import { UnreachableError } from "./store-error.ts";

/** Pause between attempts. */
const RETRY_MS = 1_000;

/** A database that may not have been reached yet. */
export interface OpenedDatabase {
  readonly database: Database;
  /** To connect to the same database again. */
  readonly location: DatabaseLocation;
  /** Until it is open: the versions of a database that this program has migrated. */
  readonly versions: () => MigrationResult;
  /**
   * Undefined for a database that is open. Otherwise resolves when it is, and rejects when it cannot be used, such as one that a newer
   * program has migrated. Statements reject with an UnreachableError until then.
   */
  readonly opening: Promise<void> | undefined;
  /** Ends the attempts to open it. */
  readonly giveUp: () => void;
}

/** As `openDatabase`, but when PostgreSQL cannot be reached, and `mayBeAway`, it is tried again each second. */
export async function openOrLater(location: DatabaseLocation, mayBeAway: boolean): Promise<OpenedDatabase> {
  try {
    const { database, versions } = await openDatabase(location);
    return { database, location, versions: () => versions, opening: undefined, giveUp: () => undefined };
  } catch (error) {
    if (!mayBeAway || !(error instanceof UnreachableError)) throw error;
    return openLater(location, error);
  }
}

async function openLater(location: DatabaseLocation, firstReason: UnreachableError): Promise<OpenedDatabase> {
  let versions: MigrationResult = { before: MIGRATIONS.length, after: MIGRATIONS.length };
  let reason: UnreachableError | undefined = firstReason;
  const ended = new AbortController();
  const open = async (): Promise<void> => {
    while (reason !== undefined) {
      await delay(RETRY_MS, undefined, { signal: ended.signal });
      try {
        const opened = await openDatabase(location);
        await opened.database.close();
        ({ versions } = opened);
        reason = undefined;
      } catch (error) {
        if (!(error instanceof UnreachableError)) throw error;
        reason = error;
      }
    }
  };
  const closed = { ...location, closedBy: () => reason };
  const opening = open().catch((error: unknown) => {
    // The store is closed, so that no caller waits.
    if (ended.signal.aborted) return new Promise<never>(() => undefined);
    throw error;
  });
  return {
    database: await connect(closed),
    location: closed,
    versions: () => versions,
    opening,
    giveUp: () => ended.abort(),
  };
}
