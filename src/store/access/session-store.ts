import type { AccountStore } from "../../access/account-store.ts";
import { toAccountRecord, toSessionRecord, toSessionRow } from "./account-rows.ts";
import { retryWhileBusy } from "../busy.ts";
import type { Database } from "../database.ts";

type Sessions = Pick<
  AccountStore,
  | "insertSession"
  | "findSession"
  | "listSessions"
  | "touchSession"
  | "removeSession"
  | "removeSessions"
  | "pruneSessions"
>;

/** The part of the account store that knows who has signed in. */
export function createSessions({ query }: Database): Sessions {
  return {
    async insertSession(session) {
      await retryWhileBusy(() => query.insertInto("sessions").values(toSessionRow(session)).execute());
    },

    async findSession(hash) {
      const found = query
        .selectFrom("sessions")
        .innerJoin("accounts", "accounts.id", "sessions.account_id")
        .selectAll("accounts")
        .select([
          "sessions.hash",
          "sessions.account_id",
          "sessions.created_at_ms as session_created_at_ms",
          "sessions.last_seen_at_ms",
          "sessions.authenticated_at_ms",
          "sessions.network",
          "sessions.browser",
        ])
        .where("sessions.hash", "=", hash);
      const row = await retryWhileBusy(() => found.executeTakeFirst());
      if (row === undefined) return undefined;
      const session = toSessionRecord({ ...row, created_at_ms: row.session_created_at_ms });
      return { session, account: toAccountRecord(row) };
    },

    async listSessions(accountId, limit) {
      const latest = query
        .selectFrom("sessions")
        .selectAll()
        .where("account_id", "=", accountId)
        .orderBy("last_seen_at_ms", "desc")
        .orderBy("hash")
        .limit(limit);
      return (await retryWhileBusy(() => latest.execute())).map(toSessionRecord);
    },

    async touchSession(hash, { lastSeenAtMs, authenticatedAtMs }) {
      const touched = query
        .updateTable("sessions")
        .set({
          hash,
          ...(lastSeenAtMs !== undefined && { last_seen_at_ms: lastSeenAtMs }),
          ...(authenticatedAtMs !== undefined && { authenticated_at_ms: authenticatedAtMs }),
        })
        .where("hash", "=", hash);
      await retryWhileBusy(() => touched.execute());
    },

    async removeSession(hash) {
      await retryWhileBusy(() => query.deleteFrom("sessions").where("hash", "=", hash).execute());
    },

    async removeSessions(accountId, exceptHash) {
      let removed = query.deleteFrom("sessions").where("account_id", "=", accountId);
      if (exceptHash !== undefined) removed = removed.where("hash", "<>", exceptHash);
      return Number((await retryWhileBusy(() => removed.executeTakeFirst())).numDeletedRows);
    },

    async pruneSessions({ createdBeforeMs, seenBeforeMs }) {
      const ended = query
        .deleteFrom("sessions")
        .where((is) => is.or([is("created_at_ms", "<", createdBeforeMs), is("last_seen_at_ms", "<", seenBeforeMs)]));
      return Number((await retryWhileBusy(() => ended.executeTakeFirst())).numDeletedRows);
    },
  };
}
