import type { LedgerEntry } from "../../core/ledger.ts";
import type { RefusalStore, RefusedRequest } from "../../ledger/refusal-store.ts";
import { removeOld } from "../postgres/retention.ts";
import type { RefusalRow } from "../schema.ts";
import { retryWhileBusy } from "../store-error.ts";
import { isAttributed } from "./attribution-filter.ts";
import type { LedgerPlaces } from "./ledger-store.ts";
import { listRows, namesakes, REFUSALS } from "./log-pages.ts";

/** Samples removed per transaction: other transactions wait meanwhile. */
const PRUNE_ROWS = 1_000;

/** The RefusalStore in the database. */
export function createRefusalStore({ database, reports, databaseUrl }: Omit<LedgerPlaces, "compaction">): RefusalStore {
  return {
    add: (counts, samples) => database.perform("addRefusals", { counts, samples }),

    async list(query) {
      // Most of them were refused before they were read.
      if (isAttributed(query)) return { requests: [], next: undefined };
      const { rows, next } = await listRows<RefusalRow>(reports, query, { table: REFUSALS });
      return { requests: rows.map(toRequest), next };
    },

    async find(id, accountIds) {
      let byId = database.query.selectFrom("refusals").selectAll().where("id", "=", id);
      if (accountIds !== undefined) byId = byId.where("account_id", "in", accountIds);
      const named = namesakes(database, { table: REFUSALS, requestId: id, accountIds });
      const row =
        (await retryWhileBusy(() => byId.executeTakeFirst())) ?? (await retryWhileBusy(() => named.executeTakeFirst()));
      return row && toRequest(row);
    },

    prepareDays: (timesMs) => database.perform("createPartitions", { usage_minutes: timesMs, refusals: timesMs }),

    async prune(beforeMs) {
      if (databaseUrl !== undefined) {
        const old = { table: "refusals", column: "ended_at_ms", beforeMs, most: PRUNE_ROWS } as const;
        return removeOld(database, { databaseUrl, ...old });
      }
      const oldest = database.query
        .selectFrom("refusals")
        .select("id")
        .where("ended_at_ms", "<", beforeMs)
        .orderBy("ended_at_ms")
        .limit(PRUNE_ROWS);
      const removed = database.query.deleteFrom("refusals").where("id", "in", oldest);
      return Number((await retryWhileBusy(() => removed.executeTakeFirst())).numDeletedRows);
    },
  };
}

function toRequest({ entry, message }: RefusalRow): RefusedRequest {
  return { entry: JSON.parse(entry) as LedgerEntry, message };
}
