import { randomUUID } from "node:crypto";
import type { AccountStore } from "../../access/account-store.ts";
import { toSecurityEvent, toSecurityEventRow } from "./account-rows.ts";
import { retryWhileBusy } from "../busy.ts";
import type { Database } from "../database.ts";

/** The part of the account store that remembers what matters for security. */
export function createEvents({ query }: Database): Pick<AccountStore, "record" | "events" | "pruneEvents"> {
  return {
    async record(event) {
      const row = toSecurityEventRow(event, randomUUID());
      await retryWhileBusy(() => query.insertInto("security_events").values(row).execute());
    },

    async events({ limit, accountId, before }) {
      let newest = query.selectFrom("security_events").selectAll().orderBy("at_ms", "desc").orderBy("id").limit(limit);
      if (before !== undefined) {
        const { atMs, id } = before;
        newest = newest
          .where("at_ms", "<=", atMs)
          .where((event) => event.or([event("at_ms", "<", atMs), event("id", ">", id)]));
      }
      if (accountId !== undefined) newest = newest.where("account_id", "=", accountId);
      return (await retryWhileBusy(() => newest.execute())).map(toSecurityEvent);
    },

    async pruneEvents({ beforeMs, mostAnonymous }) {
      const old = query.deleteFrom("security_events").where("at_ms", "<", beforeMs);
      const { numDeletedRows } = await retryWhileBusy(() => old.executeTakeFirst());
      const newest = query
        .selectFrom("security_events")
        .select("id")
        .where("account_id", "is", null)
        .where("actor_id", "is", null)
        .orderBy("at_ms", "desc")
        .orderBy("id")
        .limit(mostAnonymous);
      const excess = query
        .deleteFrom("security_events")
        .where("account_id", "is", null)
        .where("actor_id", "is", null)
        .where("id", "not in", newest);
      return Number(numDeletedRows + (await retryWhileBusy(() => excess.executeTakeFirst())).numDeletedRows);
    },
  };
}
