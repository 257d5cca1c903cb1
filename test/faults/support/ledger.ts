import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { openStore } from "../../../src/store/store.ts";

/** Fields of a ledger entry. */
export interface LedgerEntry {
  readonly requestId: string;
  readonly outcome: string;
  /** `prompt+completion`. */
  readonly usage: string;
  /** Number of attempts. */
  readonly attempts: number;
  /** Whether its caller received a truncated answer. */
  readonly partial: boolean;
}

/** Reads all entries of a SQLite ledger. */
export async function readLedger(dataDir: string): Promise<LedgerEntry[]> {
  // Opening and closing the store compacts the pending entries into the table that is read below.
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
