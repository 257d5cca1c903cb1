import type { LedgerStore } from "../../ledger/ledger-store.ts";
import type { Database } from "../database.ts";
import type { CompletionRow } from "../schema.ts";
import { retryWhileBusy } from "../store-error.ts";
import { toLedgerEntry } from "./ledger-rows.ts";
import { COMPLETIONS, listRows, namesakes } from "./log-pages.ts";

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
      const named = namesakes(database, { table: COMPLETIONS, requestId: id, accountIds });
      const row =
        (await retryWhileBusy(() => byId.executeTakeFirst())) ?? (await retryWhileBusy(() => named.executeTakeFirst()));
      return row && toLedgerEntry(row as CompletionRow);
    },
  };
}
