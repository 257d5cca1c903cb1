import type { Kysely } from "kysely";
import type { AccountStore, LinkedIdentity } from "../../access/account-store.ts";
import type { Database } from "../database.ts";
import type { Schema } from "../schema.ts";
import { retryWhileBusy } from "../store-error.ts";
import { toAccountRecord } from "./account-rows.ts";

/** The identities of the account store. */
export function createIdentities({ query }: Database): Pick<AccountStore, "findByIdentity" | "link" | "unlink"> {
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

    link: (accountId, identity) => retryWhileBusy(() => insertIdentity(query, accountId, identity)),

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
