import type { StopStore, StoredStop } from "../../access/stops.ts";
import { BoundedMap } from "../../core/bounded-map.ts";
import type { Stop } from "../../core/stops.ts";
import { type Database, lockRows } from "../database.ts";
import { retryWhileBusy } from "../store-error.ts";
import { hashesOf } from "./account-store.ts";
import type { KeyChanges } from "./key-changes.ts";

/** Limit of accounts in a list. */
const MAX_LISTED = 1_000;

/** The StopStore in the database. */
export function createStopStore(database: Database, changes: KeyChanges): StopStore {
  return {
    async list(accountIds) {
      let found = database.query
        .selectFrom("accounts")
        .select(["id", "stops"])
        .where("stops", "is not", null)
        .limit(MAX_LISTED);
      if (accountIds !== undefined) found = found.where("id", "in", accountIds);
      const rows = await retryWhileBusy(() => found.execute());
      return rows.flatMap(({ id, stops }) => readStops(stops).map((stop) => ({ ...stop, accountId: id })));
    },

    async change(accountId, change) {
      let isKnown = false;
      await changes.during(database, async (transaction) => {
        const account = transaction.selectFrom("accounts").select("stops").where("id", "=", accountId);
        const row = await lockRows(database, account).executeTakeFirst();
        isKnown = row !== undefined;
        if (row === undefined) return [];
        const after = change(readStops(row.stops));
        const stops = after.length === 0 ? null : JSON.stringify(after);
        await transaction.updateTable("accounts").set({ stops }).where("id", "=", accountId).execute();
        return hashesOf(transaction, accountId);
      });
      return isKnown;
    },
  };
}

function readStops(stops: string | null): readonly StoredStop[] {
  return stops === null ? [] : (JSON.parse(stops) as StoredStop[]);
}

/** Accounts whose stops all their keys share in memory. */
const MAX_ACCOUNTS = 1_000;

/** Reads stops for the grants of keys: the same list for all keys of an account. Undefined where nothing is stopped. */
export function createStopReader(): (accountId: string, column: string | null) => readonly Stop[] | undefined {
  const known = new BoundedMap<string, { readonly column: string; readonly stops: readonly Stop[] }>(MAX_ACCOUNTS);
  return (accountId, column) => {
    if (column === null) return undefined;
    const before = known.get(accountId);
    if (before?.column === column) return before.stops;
    const stops = readStops(column).map(({ kind, value, untilMs }) => ({ kind, value, untilMs }));
    known.set(accountId, { column, stops });
    return stops;
  };
}
