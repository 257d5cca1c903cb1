import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inject } from "vitest";
import { openStore, type Store } from "../../../src/store/store.ts";
import { createDatabase } from "../../support/postgres.ts";

/** An empty database, and what closes and removes it. */
export interface OpenedDatabase {
  readonly store: Store;
  close(): Promise<void>;
}

/** Opens an empty database of each kind, by name: rows of `describe.each`. */
export const DATABASES: readonly (readonly [name: string, open: () => Promise<OpenedDatabase>])[] = [
  ["SQLite", openSqlite],
  ["PostgreSQL", openPostgres],
];

async function openSqlite(): Promise<OpenedDatabase> {
  const dataDir = mkdtempSync(join(tmpdir(), "parley-speed-"));
  const store = await openStore({ dataDir, databaseUrl: undefined });
  return {
    store,
    async close() {
      await store.close();
      rmSync(dataDir, { recursive: true });
    },
  };
}

async function openPostgres(): Promise<OpenedDatabase> {
  const store = await openStore({ dataDir: "/nowhere", databaseUrl: await createDatabase(inject("postgresUrl")) });
  return { store, close: () => store.close() };
}
