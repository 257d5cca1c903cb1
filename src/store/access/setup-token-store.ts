import type { AccountStore } from "../../access/account-store.ts";
import { retryWhileBusy } from "../busy.ts";
import type { Database } from "../database.ts";

type SetupTokens = Pick<AccountStore, "insertSetupToken" | "findSetupToken" | "removeSetupTokens">;

/** The part of the account store that keeps tokens for the first administrator. */
export function createSetupTokens({ query }: Database): SetupTokens {
  return {
    async insertSetupToken({ hash, expiresAtMs }, nowMs) {
      await retryWhileBusy(() => query.deleteFrom("setup_tokens").where("expires_at_ms", "<=", nowMs).execute());
      const row = { hash, expires_at_ms: expiresAtMs };
      await retryWhileBusy(() => query.insertInto("setup_tokens").values(row).execute());
    },

    async findSetupToken(hash) {
      const found = query.selectFrom("setup_tokens").selectAll().where("hash", "=", hash);
      const row = await retryWhileBusy(() => found.executeTakeFirst());
      return row && { hash: row.hash, expiresAtMs: row.expires_at_ms };
    },

    async removeSetupTokens() {
      await retryWhileBusy(() => query.deleteFrom("setup_tokens").execute());
    },
  };
}
