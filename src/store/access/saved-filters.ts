import { MAX_SAVED_FILTERS, type SavedFilters } from "../../access/saved-filters.ts";
import type { Database } from "../database.ts";
import { retryWhileBusy } from "../store-error.ts";

/** The saved filters in the database. */
export function createSavedFilters({ query }: Database): SavedFilters {
  const list: SavedFilters["list"] = (accountId) => {
    const found = query.selectFrom("saved_filters").select(["name", "query"]).where("account_id", "=", accountId);
    return retryWhileBusy(() =>
      found
        .orderBy("name")
        .limit(2 * MAX_SAVED_FILTERS)
        .execute(),
    );
  };
  return {
    list,

    async save(accountId, filter) {
      // Simultaneous calls may exceed the limit by a few filters, which does no harm.
      const known = await list(accountId);
      if (known.length >= MAX_SAVED_FILTERS && !known.some(({ name }) => name === filter.name)) return false;
      const row = query
        .insertInto("saved_filters")
        .values({ account_id: accountId, ...filter })
        .onConflict((conflict) => conflict.columns(["account_id", "name"]).doUpdateSet({ query: filter.query }));
      await retryWhileBusy(() => row.execute());
      return true;
    },

    async remove(accountId, name) {
      const removal = query.deleteFrom("saved_filters").where("account_id", "=", accountId).where("name", "=", name);
      await retryWhileBusy(() => removal.execute());
    },
  };
}
