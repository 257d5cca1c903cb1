import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { openStore } from "../../../src/store/store.ts";

/** What the ledger says of one completion. */
export interface LedgerEntry {
  readonly requestId: string;
  readonly outcome: string;
  /** `prompt+completion`. */
  readonly usage: string;
  /** How many attempts there were. */
  readonly attempts: number;
  /** Whether its caller got the beginning of an answer and not its end. */
  readonly partial: boolean;
}

/** All entries of a ledger on SQLite. */
export async function readLedger(dataDir: string): Promise<LedgerEntry[]> {
  // Whoever closes the database brings into the table what was written in short.
  await (await openStore({ dataDir, databaseUrl: undefined })).close();
  const database = new DatabaseSync(join(dataDir, "parley.db"), { readOnly: true });
  try {
    const sql = "select request_id, outcome, prompt_tokens, completion_tokens, attempts, partial from completions";
    return database
      .prepare(sql)
      .all()
      .map((row) => ({
        requestId: String(row["request_id"]),
        outcome: String(row["outcome"]),
        usage: `${Number(row["prompt_tokens"])}+${Number(row["completion_tokens"])}`,
        attempts: (JSON.parse(String(row["attempts"])) as unknown[]).length,
        partial: row["partial"] === 1,
      }));
  } finally {
    database.close();
  }
}
