import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { openStore } from "../../../src/store/store.ts";
import { queryPostgres } from "../../support/postgres.ts";

/** Completion IDs in the ledger, with duplicates. */
export async function idsIn(dataDir: string, databaseUrl: string | undefined): Promise<string[]> {
  const sql = "select id from completions";
  // The closed database has compacted its pending entries.
  await (await openStore({ dataDir, databaseUrl })).close();
  if (databaseUrl !== undefined) return (await queryPostgres(databaseUrl, sql)).map((row) => String(row["id"]));
  const database = new DatabaseSync(join(dataDir, "parley.db"), { readOnly: true });
  try {
    return database
      .prepare(sql)
      .all()
      .map((row) => String(row["id"]));
  } finally {
    database.close();
  }
}
