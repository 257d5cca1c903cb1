import { sql } from "kysely";
import type { Database } from "./database.ts";

/** What SQLite finds wrong with its file; nothing for PostgreSQL, which looks after itself. Closes the database. */
export async function findDamage(database: Database): Promise<readonly string[]> {
  try {
    if (database.kind === "postgres") return [];
    const { rows } = await sql<{ integrity_check: string }>`pragma integrity_check`.execute(database.query);
    return rows.map(({ integrity_check }) => integrity_check).filter((text) => text !== "ok");
  } finally {
    await database.close();
  }
}
