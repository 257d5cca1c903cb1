import type { Kysely } from "kysely";
import type { AccountStore, LinkedIdentity, StoredRouting } from "../../access/account-store.ts";
import { DEFAULT_ACCOUNT_ID } from "../../access/key-store.ts";
import { type Database, lockRows } from "../database.ts";
import type { Schema } from "../schema.ts";
import { retryWhileBusy } from "../store-error.ts";
import { toAccountRecord, toAccountRow, toRoleColumns } from "./account-rows.ts";
import { createAdminKeys } from "./admin-key-store.ts";
import { changeAccount } from "./change-account.ts";
import { announced, ANY_KEY, type KeyChanges, MAX_ANNOUNCED } from "./key-changes.ts";
import { createOffboarding } from "./offboarding.ts";
import { toRoutingColumns, toStoredRouting } from "./routing-rows.ts";
import { createFactors } from "./factor-store.ts";
import { createIdentities, insertIdentity } from "./identity-store.ts";
import {
  createBrowsers,
  createInvitations,
  createSessions,
  createSetupTokens,
  createSignInLinks,
} from "./sign-in-store.ts";
import { createRoles } from "./role-store.ts";
import { createTeams } from "./team-store.ts";
import { hashesOfAccount } from "./working-keys.ts";

/** The AccountStore in the database. Changes that affect keys are announced to key caches. */
export function createAccountStore(database: Database, changes: KeyChanges): AccountStore {
  const { query } = database;
  return {
    ...createSessions(database),
    ...createBrowsers(database),
    ...createSetupTokens(database),
    ...createSignInLinks(database),
    ...createIdentities(database),
    ...createFactors(database),
    ...createInvitations(database),
    ...createTeams(database),
    ...createRoles(database),
    ...createAdminKeys(database),
    ...createOffboarding(database, changes),

    insert: (account, identity) =>
      withIdentity(database, { accountId: account.id, identity }, async (connection) => {
        const insertion = connection
          .insertInto("accounts")
          .values(toAccountRow(account))
          .onConflict((conflict) => conflict.column("email").doNothing());
        return (await insertion.executeTakeFirst()).numInsertedOrUpdatedRows === 1n;
      }),

    async find(id) {
      const found = query.selectFrom("accounts").selectAll().where("id", "=", id);
      const row = await retryWhileBusy(() => found.executeTakeFirst());
      return row && toAccountRecord(row);
    },

    async findByEmail(email) {
      const found = query.selectFrom("accounts").selectAll().where("email", "=", email);
      const row = await retryWhileBusy(() => found.executeTakeFirst());
      return row && toAccountRecord(row);
    },

    async list(page) {
      let oldest = query.selectFrom("accounts").selectAll().orderBy("created_at_ms").orderBy("id");
      if (page !== undefined) oldest = oldest.limit(page.limit);
      if (page?.after !== undefined) {
        const { createdAtMs, id } = page.after;
        oldest = oldest
          .where("created_at_ms", ">=", createdAtMs)
          .where((account) => account.or([account("created_at_ms", ">", createdAtMs), account("id", ">", id)]));
      }
      return (await retryWhileBusy(() => oldest.execute())).map(toAccountRecord);
    },

    async isClaimed() {
      const owner = query.selectFrom("accounts").select("id").where("password_hash", "is not", null).limit(1);
      const linked = query.selectFrom("identities").select("account_id").limit(1);
      return (
        (await retryWhileBusy(() => owner.executeTakeFirst())) !== undefined ||
        (await retryWhileBusy(() => linked.executeTakeFirst())) !== undefined
      );
    },

    async update(id, wanted, expected) {
      // Keys depend on no other field of the account.
      const concernsKeys = wanted.limits !== undefined || "disabledAtMs" in wanted;
      if (!concernsKeys) return retryWhileBusy(() => changeAccount(query, id, { wanted, expected }));
      return changes.during(database, async (transaction) => {
        if (!(await changeAccount(transaction, id, { wanted, expected }))) return [];
        const hashes = await hashesOf(transaction, id);
        return hashes.length > 0 ? hashes : [ANY_KEY];
      });
    },

    async routing(id) {
      const found = query.selectFrom("accounts").select(["credentials", "aliases"]).where("id", "=", id);
      const row = await retryWhileBusy(() => found.executeTakeFirst());
      return row && toStoredRouting(row);
    },

    async changeRouting(id, change) {
      let changed: StoredRouting | undefined;
      await changes.during(database, async (transaction) => {
        const account = transaction.selectFrom("accounts").select(["credentials", "aliases"]).where("id", "=", id);
        const row = await lockRows(database, account).executeTakeFirst();
        if (row === undefined) return [];
        changed = change(toStoredRouting(row));
        await transaction.updateTable("accounts").set(toRoutingColumns(changed)).where("id", "=", id).execute();
        return hashesOf(transaction, id);
      });
      return changed;
    },

    claimDefault: ({ email, name, passwordHash }, identity) =>
      withIdentity(database, { accountId: DEFAULT_ACCOUNT_ID, identity }, async (connection) => {
        const others = connection.selectFrom("accounts as others").select("others.id");
        const claim = connection
          .updateTable("accounts")
          .set({ email: email ?? null, name, password_hash: passwordHash ?? null, ...toRoleColumns("owner") })
          .where("id", "=", DEFAULT_ACCOUNT_ID)
          // Of two simultaneous claims, the second waits for this row and then finds its owner.
          .where("password_hash", "is", null)
          .where("email", "is", null)
          .where((is) => is.not(is.exists(others.where("others.password_hash", "is not", null))))
          .where((is) => is.not(is.exists(connection.selectFrom("identities").select("identities.account_id"))))
          .where((is) =>
            is.not(
              is.exists(others.where("others.email", "=", email ?? "").where("others.id", "<>", DEFAULT_ACCOUNT_ID)),
            ),
          );
        return (await claim.executeTakeFirst()).numUpdatedRows === 1n;
      }),
  };
}

/** Changes an account, with its first identity in the same transaction. False, without effect, when one of them is not possible. */
async function withIdentity(
  database: Database,
  { accountId, identity }: { readonly accountId: string; readonly identity: LinkedIdentity | undefined },
  change: (connection: Kysely<Schema>) => Promise<boolean>,
): Promise<boolean> {
  if (identity === undefined) return retryWhileBusy(() => change(database.query));
  try {
    return await database.transaction(async (transaction) => {
      if (!(await change(transaction))) return false;
      if (!(await insertIdentity(transaction, accountId, identity))) throw new IdentityTaken();
      return true;
    });
  } catch (error) {
    if (error instanceof IdentityTaken) return false;
    throw error;
  }
}

/** Rolls the transaction back. */
class IdentityTaken extends Error {}

/** The keys of an account to announce, or ANY_KEY for many. */
export async function hashesOf(transaction: Kysely<Schema>, accountId: string): Promise<readonly string[]> {
  return announced(await hashesOfAccount(transaction, accountId, MAX_ANNOUNCED + 1));
}
