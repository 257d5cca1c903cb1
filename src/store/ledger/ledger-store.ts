import type { LedgerStore } from "../../ledger/ledger-store.ts";
import { retryWhileBusy } from "../busy.ts";
import { chunksOf } from "../chunks.ts";
import type { Database } from "../database.ts";
import type { LedgerCompaction } from "./ledger-compaction.ts";
import { createRequestLog } from "./request-log.ts";
import type { SpendingRow } from "../schema.ts";

/** How many entries are removed at a time: others wait meanwhile. */
const PRUNE_ROWS = 1_000;

/** Where a ledger is. */
export interface LedgerPlaces {
  readonly database: Database;
  /** Where reading much does not keep others waiting; may be the same. */
  readonly reports: Database;
  readonly compaction: LedgerCompaction;
}

/** The ledger in the database. */
export function createLedgerStore({ database, reports, compaction }: LedgerPlaces): LedgerStore {
  const { query } = database;
  const log = createRequestLog(reports);
  return {
    async insert(entries) {
      if (entries.length === 0) return;
      await database.perform("appendSegment", JSON.stringify(entries));
      compaction.appended(entries.length);
    },

    async flush() {
      await compaction.flush();
    },

    async list(selection) {
      await compaction.flushed();
      return log.list(selection);
    },

    async find(id, accountId) {
      await compaction.flushed();
      return log.find(id, accountId);
    },

    async spending(subjects, month) {
      await compaction.flushed();
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
      await compaction.flushed();
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
