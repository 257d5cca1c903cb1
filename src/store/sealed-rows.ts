import { sql } from "kysely";
import type { Database } from "./database.ts";
import type { SealedRow } from "./schema.ts";
import { retryWhileBusy } from "./store-error.ts";

/** Tables of encrypted texts with an owner and an end. */
type SealedTable = "kept_responses" | "completion_contents";

/** Rows of one removal, which must not take too long. */
const MAX_PRUNED = 200;

/** Encrypted texts of accounts. */
export interface SealedRows {
  insert(row: Omit<SealedRow, "bytes">): Promise<void>;
  /** Its content, unless it is as old as `afterMs`. */
  find(accountId: string, id: string, afterMs: number): Promise<string | undefined>;
  remove(accountId: string, id: string, afterMs: number): Promise<boolean>;
  /** Removes some rows of `beforeMs` and older; returns their number, 0 when there are none left. */
  prune(beforeMs: number): Promise<number>;
}

/** The SealedRows of a table. */
export function createSealedRows({ query }: Database, table: SealedTable): SealedRows {
  return {
    async insert(row) {
      const values = { ...row, bytes: row.content.length };
      await retryWhileBusy(() => query.insertInto(table).values(values).execute());
    },

    async find(accountId, id, afterMs) {
      const found = query
        .selectFrom(table)
        .select("content")
        .where("account_id", "=", accountId)
        .where("id", "=", id)
        .where("created_at_ms", ">", afterMs);
      return (await retryWhileBusy(() => found.executeTakeFirst()))?.content;
    },

    async remove(accountId, id, afterMs) {
      const removal = query
        .deleteFrom(table)
        .where("account_id", "=", accountId)
        .where("id", "=", id)
        .where("created_at_ms", ">", afterMs);
      return (await retryWhileBusy(() => removal.executeTakeFirst())).numDeletedRows === 1n;
    },

    async prune(beforeMs) {
      const rows = sql.table(table);
      const removal = sql`delete from ${rows} where (account_id, id) in (
        select account_id, id from ${rows} where created_at_ms <= ${beforeMs} limit ${MAX_PRUNED})`;
      const { numAffectedRows = 0n } = await retryWhileBusy(() => removal.execute(query));
      return Number(numAffectedRows);
    },
  };
}
