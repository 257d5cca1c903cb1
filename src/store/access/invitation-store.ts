import type { AccountStore } from "../../access/account-store.ts";
import { toAccountRow, toInvitationRecord, toInvitationRow } from "./account-rows.ts";
import { retryWhileBusy } from "../busy.ts";
import type { Database } from "../database.ts";

type Invitations = Pick<
  AccountStore,
  "insertInvitation" | "findInvitation" | "listInvitations" | "acceptInvitation" | "removeInvitation"
>;

/** Undoes the transaction: the invitation stays unused. */
class AddressTaken extends Error {}

/** The part of the account store that keeps invitations. */
export function createInvitations(database: Database): Invitations {
  const { query } = database;
  return {
    async insertInvitation(invitation) {
      await retryWhileBusy(() => query.insertInto("invitations").values(toInvitationRow(invitation)).execute());
    },

    async findInvitation(hash) {
      const found = query.selectFrom("invitations").selectAll().where("hash", "=", hash);
      const row = await retryWhileBusy(() => found.executeTakeFirst());
      return row && toInvitationRecord(row);
    },

    async listInvitations() {
      const all = query.selectFrom("invitations").selectAll().orderBy("created_at_ms", "desc").orderBy("id");
      return (await retryWhileBusy(() => all.execute())).map(toInvitationRecord);
    },

    async acceptInvitation(hash, account, atMs) {
      try {
        return await database.transaction(async (transaction) => {
          const used = await transaction
            .updateTable("invitations")
            .set({ used_at_ms: atMs })
            .where("hash", "=", hash)
            .where("used_at_ms", "is", null)
            .where("expires_at_ms", ">", atMs)
            .executeTakeFirst();
          if (used.numUpdatedRows === 0n) return false;
          const made = await transaction
            .insertInto("accounts")
            .values(toAccountRow(account))
            .onConflict((conflict) => conflict.column("email").doNothing())
            .executeTakeFirst();
          if (made.numInsertedOrUpdatedRows !== 1n) throw new AddressTaken();
          return true;
        });
      } catch (error) {
        if (error instanceof AddressTaken) return false;
        throw error;
      }
    },

    async removeInvitation(id) {
      const removed = query.deleteFrom("invitations").where("id", "=", id);
      return (await retryWhileBusy(() => removed.executeTakeFirst())).numDeletedRows === 1n;
    },
  };
}
