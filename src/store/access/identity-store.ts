import type { Kysely } from "kysely";
import type { AccountStore, LinkedIdentity } from "../../access/account-store.ts";
import { type Database, lockRows } from "../database.ts";
import type { Schema } from "../schema.ts";
import { retryWhileBusy } from "../store-error.ts";
import { toAccountRecord } from "./account-rows.ts";

/** What a person signs in with, or has signed in with. */
const SIGN_INS = [
  "passkeys",
  "totp_secrets",
  "recovery_codes",
  "password_reset_links",
  "sessions",
  "known_browsers",
] as const;

/** The identities of the account store. */
export function createIdentities(database: Database): Pick<AccountStore, "findByIdentity" | "link" | "unlink"> {
  const { query } = database;
  return {
    async findByIdentity({ issuer, subject }) {
      const found = query
        .selectFrom("accounts")
        .innerJoin("identities", "identities.account_id", "accounts.id")
        .selectAll("accounts")
        .where("identities.issuer", "=", issuer)
        .where("identities.subject", "=", subject);
      const row = await retryWhileBusy(() => found.executeTakeFirst());
      return row && toAccountRecord(row);
    },

    link: (accountId, identity) =>
      database.transaction(async (transaction) => {
        // Simultaneous changes of its factors wait.
        await lockRows(database, transaction.selectFrom("accounts").select("id").where("id", "=", accountId)).execute();
        if (!(await insertIdentity(transaction, accountId, identity))) return false;
        await transaction.updateTable("accounts").set({ password_hash: null }).where("id", "=", accountId).execute();
        for (const table of SIGN_INS) await transaction.deleteFrom(table).where("account_id", "=", accountId).execute();
        return true;
      }),

    async unlink(accountId, issuer) {
      const removed = query.deleteFrom("identities").where("account_id", "=", accountId).where("issuer", "=", issuer);
      return (await retryWhileBusy(() => removed.executeTakeFirst())).numDeletedRows === 1n;
    },
  };
}

/** False when the identity is taken, or the account has one of this issuer. */
export async function insertIdentity(
  connection: Kysely<Schema>,
  accountId: string,
  { issuer, subject, linkedAtMs }: LinkedIdentity,
): Promise<boolean> {
  const insertion = connection
    .insertInto("identities")
    .values({ issuer, subject, account_id: accountId, linked_at_ms: linkedAtMs })
    .onConflict((conflict) => conflict.doNothing());
  return (await insertion.executeTakeFirst()).numInsertedOrUpdatedRows === 1n;
}
