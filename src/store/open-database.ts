import { statSync } from "node:fs";
import { connect, connectUnlimited, type Database, type DatabaseLocation, describeLocation } from "./database.ts";
import { MigrationError, migrate, type MigrationResult } from "./migrate.ts";
import { isPassing } from "./postgres/postgres-error.ts";
import { StoreError, UnreachableError } from "./store-error.ts";

/** Connects to the database and migrates it. Throws a StoreError that says what to do. */
export async function openDatabase(
  location: DatabaseLocation,
): Promise<{ readonly database: Database; readonly versions: MigrationResult }> {
  const where = describeLocation(location);
  try {
    const database = await connect(location);
    try {
      return { database, versions: await migrate(database, () => connectUnlimited(location)) };
    } catch (error) {
      await database.close();
      throw error;
    }
  } catch (error) {
    throw explainOpening(where, error);
  }
}

/** Whether the file of a SQLite database exists. Throws a StoreError where this user may not see that. */
export function databaseExists(file: string): boolean {
  try {
    return statSync(file, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    throw explainOpening(file, error);
  }
}

/** Makes a StoreError that describes the failure and its remedy. */
export function explainOpening(where: string, error: unknown): StoreError {
  if (error instanceof MigrationError)
    return new StoreError(`${where}: ${error.message}: ${describeMigration(error.cause)}`, { cause: error });
  if (!(error instanceof StoreError)) {
    const message = `${where} cannot be opened: ${describe(error)}`;
    return new (isPassing(error) ? UnreachableError : StoreError)(message, { cause: error });
  }
  return error.message.startsWith(where) ? error : new StoreError(`${where}: ${error.message}`, { cause: error });
}

const REASONS: Readonly<Record<string, string>> = {
  EACCES: "this user may not write there; change its owner or choose another data_dir",
  EEXIST: "the data_dir is not a directory",
  ENOENT: "no directory can be created there; choose another data_dir",
  ENOSPC: "the disk is full",
  ENOTDIR: "the data_dir is not a directory",
  EPERM: "this user may not write there; change its owner or choose another data_dir",
  EROFS: "the file system is read-only; choose another data_dir",
  "55P03": "another process has been migrating it for a minute; wait for it, or find out what blocks it",
  "42501": "this user may not make tables there; grant it the right to create in the schema",
};

/** Reasons of a failed migration, where they differ. */
function describeMigration(cause: unknown): string {
  if ((cause as { code?: unknown }).code !== "55P03") return describe(cause);
  return "other transactions have held a lock on its table for a minute; see which in pg_stat_activity";
}

function describe(error: unknown): string {
  const { code, errstr, message } = error as { code?: string; errstr?: string; message?: string };
  return REASONS[code ?? ""] ?? errstr ?? message ?? code ?? "unknown reason";
}
