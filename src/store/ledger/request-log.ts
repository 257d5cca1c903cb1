import type { LedgerStore } from "../../ledger/ledger-store.ts";
import type { Database } from "../database.ts";
import type { CompletionRow } from "../schema.ts";
import { retryWhileBusy } from "../store-error.ts";
import { toLedgerEntry } from "./ledger-rows.ts";
import { COMPLETIONS, listRows } from "./log-pages.ts";

/** Entries with the same request ID that are examined for one of an account. */
const MAX_NAMESAKES = 1_000;

/** The ledger as a list of requests, and the look-up of one. */
export function createRequestLog(
  database: Database,
  { window }: { readonly window?: number } = {},
): Pick<LedgerStore, "list" | "find"> {
  return {
    async list(query) {
      const { rows, next } = await listRows<CompletionRow>(database, query, { table: COMPLETIONS, window });
      return { entries: rows.map(toLedgerEntry), next };
    },

    async find(id, accountIds) {
      let byId = database.query.selectFrom("completions").selectAll().where("id", "=", id);
      if (accountIds !== undefined) byId = byId.where("account_id", "in", accountIds);
      const named = namesakes(database, id, accountIds);
      const row =
        (await retryWhileBusy(() => byId.executeTakeFirst())) ?? (await retryWhileBusy(() => named.executeTakeFirst()));
      return row && toLedgerEntry(row);
    },
  };
}

/** Query of the latest completion with this request ID, which a caller may use for many requests. */
export function namesakes({ query }: Database, requestId: string, accountIds: readonly string[] | undefined) {
  const latest = query
    .selectFrom("completions")
    .selectAll()
    .where("request_id", "=", requestId)
    .orderBy("ended_at_ms", "desc")
    .limit(accountIds === undefined ? 1 : MAX_NAMESAKES);
  const own = query.selectFrom(latest.as("latest")).selectAll().orderBy("ended_at_ms", "desc").limit(1);
  return accountIds === undefined ? own : own.where("account_id", "in", accountIds);
}
