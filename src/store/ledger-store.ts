import type { LedgerStore } from "../ledger/ledger-store.ts";
import { retryWhileBusy } from "./busy.ts";
import { chunksOf } from "./chunks.ts";
import type { Database } from "./database.ts";
import { createRequestLog } from "./request-log.ts";
import type { SpendingRow } from "./schema.ts";

/** How many entries are removed at a time: others wait meanwhile. */
const PRUNE_ROWS = 1_000;

/** The ledger in the database. `reports` is where reading much does not keep others waiting; may be the same. */
export function createLedgerStore(database: Database, reports: Database): LedgerStore {
  const { query } = database;
  return {
    async insert(entries) {
      if (entries.length > 0) await database.perform("insertEntries", entries);
    },

    ...createRequestLog(reports),

    async spending(subjects, month) {
      const found = new Map<string, SpendingRow>();
      for (const chunk of chunksOf(subjects)) {
        const rows = query.selectFrom("spending").selectAll().where("subject", "in", chunk).where("month", "=", month);
        for (const row of await retryWhileBusy(() => rows.execute())) found.set(row.subject, row);
      }
      return subjects.map((subject) => {
        const row = found.get(subject);
        return { spentMicroUsd: row?.spent_micro_usd ?? 0, heldMicroUsd: row?.held_micro_usd ?? 0 };
      });
    },

    async prune(beforeMs) {
      const oldest = query
        .selectFrom("completions")
        .select("id")
        .where("ended_at_ms", "<", beforeMs)
        .orderBy("ended_at_ms")
        .limit(PRUNE_ROWS);
      const removed = query.deleteFrom("completions").where("id", "in", oldest);
      return Number((await retryWhileBusy(() => removed.executeTakeFirst())).numDeletedRows);
    },
  };
}
