import { closeSync, fsyncSync, openSync, rmSync } from "node:fs";
import { sql } from "kysely";
import { connectUnlimited, type DatabaseLocation, sqliteFile } from "./database.ts";
import { databaseExists, explainOpening } from "./open-database.ts";
import { retryWhileBusy, StoreError } from "./store-error.ts";

/**
 * Writes a copy of the SQLite database to a file, readable only by this user, while other processes use the database. The
 * copy is the committed state of one moment; the database is not migrated. On failure throws a StoreError that says what to
 * do, and leaves no copy.
 */
export async function backUp(location: DatabaseLocation, target: string): Promise<void> {
  if (location.databaseUrl !== undefined)
    throw new StoreError("The database is PostgreSQL: back it up with pg_dump, or with your service's own backups.");
  const source = sqliteFile(location.dataDir);
  if (!databaseExists(source)) throw new StoreError(`There is no database ${source}.`);
  createTarget(target);
  const database = await connectUnlimited(location);
  try {
    await retryWhileBusy(() => sql`vacuum into ${target}`.execute(database.query));
    persist(target);
  } catch (error) {
    rmSync(target, { force: true });
    throw explainOpening(source, error);
  } finally {
    await database.close();
  }
}

const TARGET_PROBLEMS: Readonly<Record<string, string>> = {
  EACCES: "this user may not write there",
  ENOENT: "there is no such folder",
  ENOTDIR: "there is no such folder",
};

/** Creates the empty file that SQLite then writes into, so that only this user can ever read it. */
function createTarget(target: string): void {
  try {
    closeSync(openSync(target, "wx", 0o600));
  } catch (error) {
    const { code } = error as { code?: string };
    if (code === "EEXIST") throw new StoreError(`${target} exists already; a backup overwrites nothing.`);
    const reason = TARGET_PROBLEMS[code ?? ""] ?? code ?? String(error);
    throw new StoreError(`${target} cannot be written: ${reason}`, { cause: error });
  }
}

function persist(target: string): void {
  const descriptor = openSync(target, "r+");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
