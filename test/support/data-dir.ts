import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sqliteFile } from "../../src/store/database.ts";
import { openStore } from "../../src/store/store.ts";

let migrated: Promise<Buffer> | undefined;

/**
 * Creates a temporary data directory whose database has all tables and no rows of a test, as after a first start. The migrations run
 * once in a process of the tests, and each directory gets a copy of their result. The caller removes it.
 */
export async function makeDataDir(prefix: string): Promise<string> {
  const database = await (migrated ??= migrate());
  const dataDir = mkdtempSync(join(tmpdir(), prefix));
  writeFileSync(sqliteFile(dataDir), database, { mode: 0o600 });
  return dataDir;
}

/** The bytes of a database after the migrations. */
async function migrate(): Promise<Buffer> {
  const dataDir = mkdtempSync(join(tmpdir(), "parley-migrated-"));
  try {
    await (await openStore({ dataDir, databaseUrl: undefined })).close();
    return readFileSync(sqliteFile(dataDir));
  } finally {
    rmSync(dataDir, { recursive: true });
  }
}
