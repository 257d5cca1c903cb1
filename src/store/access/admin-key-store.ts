import type { AdminKeyStore } from "../../access/admin-key-store.ts";
import { LookUpQueue } from "../../access/look-up-queue.ts";
import { type Database, lockRows } from "../database.ts";
import { retryWhileBusy } from "../store-error.ts";
import { toAdminKey, toAdminKeyRow } from "./account-rows.ts";
import { findCaller } from "./team-store.ts";

/** The administration keys in the database. Look-ups are made together, as those of sessions. */
export function createAdminKeys(database: Database): AdminKeyStore {
  const { query } = database;
  const findKeys = async (hashes: readonly string[]) => {
    const found = query.selectFrom("administration_keys").selectAll().where("hash", "in", hashes);
    const rows = new Map((await retryWhileBusy(() => found.execute())).map((row) => [row.hash, row]));
    return hashes.map((hash) => rows.get(hash));
  };
  const lookUps = new LookUpQueue(findKeys, { perQuery: 500, inFlight: 1 });
  return {
    insertAdminKey: (key, most) =>
      database.transaction(async (transaction) => {
        // Simultaneous insertions for an account, and changes of it, wait here.
        const found = transaction.selectFrom("accounts").select("disabled_at_ms").where("id", "=", key.accountId);
        const account = await lockRows(database, found).executeTakeFirstOrThrow();
        if (account.disabled_at_ms !== null) return "disabled";
        const { count } = await transaction
          .selectFrom("administration_keys")
          .select(({ fn }) => fn.countAll<number>().as("count"))
          .where("account_id", "=", key.accountId)
          .where("revoked_at_ms", "is", null)
          .where((each) => each.or([each("expires_at_ms", "is", null), each("expires_at_ms", ">", key.createdAtMs)]))
          .executeTakeFirstOrThrow();
        if (count >= most) return "full";
        await transaction.insertInto("administration_keys").values(toAdminKeyRow(key)).execute();
        return "added";
      }),

    async findAdminKey(hash) {
      const row = await lookUps.find(hash);
      if (row === undefined) return undefined;
      const caller = await retryWhileBusy(() => findCaller(query, row.account_id));
      return caller && { ...caller, adminKey: toAdminKey(row) };
    },

    async ownerOfAdminKey(id) {
      const found = query.selectFrom("administration_keys").select("account_id").where("id", "=", id);
      return (await retryWhileBusy(() => found.executeTakeFirst()))?.account_id;
    },

    async listAdminKeys(limit) {
      const newest = query
        .selectFrom("administration_keys")
        .selectAll()
        .orderBy("created_at_ms", "desc")
        .orderBy("id")
        .limit(limit);
      return (await retryWhileBusy(() => newest.execute())).map(toAdminKey);
    },

    async touchAdminKey(id, atMs) {
      const touch = query.updateTable("administration_keys").set({ last_used_at_ms: atMs }).where("id", "=", id);
      await retryWhileBusy(() => touch.execute());
    },

    async revokeAdminKey(id, atMs) {
      const revoke = query
        .updateTable("administration_keys")
        .set({ revoked_at_ms: atMs })
        .where("id", "=", id)
        .where("revoked_at_ms", "is", null)
        .returningAll();
      const row = await retryWhileBusy(() => revoke.executeTakeFirst());
      return row && toAdminKey(row);
    },

    async pruneAdminKeys(beforeMs) {
      const ended = query
        .deleteFrom("administration_keys")
        .where((key) => key.or([key("revoked_at_ms", "<", beforeMs), key("expires_at_ms", "<", beforeMs)]));
      return Number((await retryWhileBusy(() => ended.executeTakeFirst())).numDeletedRows);
    },
  };
}
