import type { AccountStore } from "../../access/account-store.ts";
import { retryWhileBusy } from "../busy.ts";
import type { Database } from "../database.ts";

type Browsers = Pick<AccountStore, "accountsOfBrowser" | "keepBrowser" | "removeBrowsers" | "pruneBrowsers">;

/** The part of the account store that keeps the browsers in which accounts have signed in. */
export function createBrowsers(database: Database): Browsers {
  const { query } = database;
  return {
    async accountsOfBrowser(hash) {
      const found = query.selectFrom("known_browsers").select("account_id").where("hash", "=", hash);
      return (await retryWhileBusy(() => found.execute())).map(({ account_id }) => account_id);
    },

    async keepBrowser({ hash, accountId, signedInAtMs }, { formerHash, most }) {
      await database.transaction(async (transaction) => {
        if (formerHash !== undefined)
          await transaction.updateTable("known_browsers").set({ hash }).where("hash", "=", formerHash).execute();
        await transaction
          .insertInto("known_browsers")
          .values({ hash, account_id: accountId, signed_in_at_ms: signedInAtMs })
          .onConflict((conflict) =>
            conflict.columns(["hash", "account_id"]).doUpdateSet({ signed_in_at_ms: signedInAtMs }),
          )
          .execute();
        const latest = transaction
          .selectFrom("known_browsers")
          .select("hash")
          .where("account_id", "=", accountId)
          .orderBy("signed_in_at_ms", "desc")
          .orderBy("hash")
          .limit(most);
        await transaction
          .deleteFrom("known_browsers")
          .where("account_id", "=", accountId)
          .where("hash", "not in", latest)
          .execute();
      });
    },

    async removeBrowsers(accountId) {
      await retryWhileBusy(() => query.deleteFrom("known_browsers").where("account_id", "=", accountId).execute());
    },

    async pruneBrowsers(beforeMs) {
      const old = query.deleteFrom("known_browsers").where("signed_in_at_ms", "<", beforeMs);
      return Number((await retryWhileBusy(() => old.executeTakeFirst())).numDeletedRows);
    },
  };
}
