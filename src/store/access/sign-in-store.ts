import type { AccountStore } from "../../access/account-store.ts";
import type { Membership, TeamRole } from "../../access/team-store.ts";
import { LookUpQueue } from "../../access/look-up-queue.ts";
import type { Database } from "../database.ts";
import { retryWhileBusy } from "../store-error.ts";
import {
  JOINED_ROLE,
  toAccountRecord,
  toAccountRow,
  toInvitationRecord,
  toInvitationRow,
  toJoinedRole,
  toSessionRecord,
  toSessionRow,
} from "./account-rows.ts";
import { insertIdentity } from "./identity-store.ts";

type Browsers = Pick<AccountStore, "accountsOfBrowser" | "keepBrowser" | "removeBrowsers" | "pruneBrowsers">;

/** The known browsers of the account store. Look-ups are made together, as those of sessions. */
export function createBrowsers(database: Database): Browsers {
  const { query } = database;
  const findAccounts = async (hashes: readonly string[]) => {
    const found = query.selectFrom("known_browsers").select(["hash", "account_id"]).where("hash", "in", hashes);
    const byHash = Map.groupBy(await retryWhileBusy(() => found.execute()), ({ hash }) => hash);
    return hashes.map((hash) => byHash.get(hash)?.map(({ account_id }) => account_id));
  };
  const lookUps = new LookUpQueue(findAccounts, { perQuery: 500, inFlight: 1 });
  return {
    accountsOfBrowser: async (hash) => (await lookUps.find(hash)) ?? [],

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

type Sessions = Pick<
  AccountStore,
  | "insertSession"
  | "idTokenOf"
  | "findSession"
  | "listSessions"
  | "touchSession"
  | "removeSession"
  | "removeSessions"
  | "pruneSessions"
>;

/**
 * The sessions of the account store. Look-ups are made together, because a client can send any number of unknown sessions.
 */
export function createSessions({ query }: Database): Sessions {
  const findSessions = async (hashes: readonly string[]) => {
    const found = query
      .selectFrom("sessions")
      .innerJoin("accounts", "accounts.id", "sessions.account_id")
      .leftJoin("team_members", "team_members.account_id", "accounts.id")
      .leftJoin("accounts as teams", "teams.id", "team_members.team_id")
      .leftJoin("custom_roles", "custom_roles.id", "accounts.exact_role")
      .selectAll("accounts")
      .select(JOINED_ROLE)
      .select(["teams.id as team_id", "teams.name as team_name", "team_members.role as team_role"])
      .select([
        "sessions.hash",
        "sessions.account_id",
        "sessions.created_at_ms as session_created_at_ms",
        "sessions.last_seen_at_ms",
        "sessions.authenticated_at_ms",
        "sessions.network",
        "sessions.browser",
        "sessions.method",
        "sessions.second_factor",
      ])
      .where("sessions.hash", "in", hashes)
      .orderBy("teams.name")
      .orderBy("teams.id");
    // A row for each team of the account.
    const byHash = Map.groupBy(await retryWhileBusy(() => found.execute()), ({ hash }) => hash);
    return hashes.map((hash) => {
      const [row, ...others] = byHash.get(hash) ?? [];
      if (row === undefined) return undefined;
      return {
        session: toSessionRecord({ ...row, created_at_ms: row.session_created_at_ms }),
        account: toAccountRecord(row),
        ...toJoinedRole(row),
        memberships: [row, ...others].flatMap(toMemberships),
      };
    });
  };
  const lookUps = new LookUpQueue(findSessions, { perQuery: 500, inFlight: 1 });
  return {
    async insertSession(session, idToken) {
      await retryWhileBusy(() => query.insertInto("sessions").values(toSessionRow(session, idToken)).execute());
    },

    async idTokenOf(hash) {
      const found = query.selectFrom("sessions").select("id_token").where("hash", "=", hash);
      return (await retryWhileBusy(() => found.executeTakeFirst()))?.id_token ?? undefined;
    },

    findSession: async (hash) => lookUps.find(hash),

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

    async touchSession(hash, { lastSeenAtMs, authenticatedAtMs, secondFactor }) {
      const touched = query
        .updateTable("sessions")
        .set({
          hash,
          ...(lastSeenAtMs !== undefined && { last_seen_at_ms: lastSeenAtMs }),
          ...(authenticatedAtMs !== undefined && { authenticated_at_ms: authenticatedAtMs }),
          ...(secondFactor === true && { second_factor: 1 }),
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

/** The membership in a row of a session; none in that of an account without teams. */
function toMemberships(row: {
  readonly team_id: string | null;
  readonly team_name: string | null;
  readonly team_role: string | null;
}): Membership[] {
  const { team_id: teamId, team_name: teamName, team_role: role } = row;
  if (teamId === null || teamName === null || role === null) return [];
  return [{ teamId, teamName, role: role as TeamRole }];
}

type SetupTokens = Pick<AccountStore, "insertSetupToken" | "findSetupToken" | "removeSetupTokens">;

/** The setup tokens of the account store. */
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

type SignInLinks = Pick<AccountStore, "insertSignInLink" | "takeSignInLink">;

/** The links of the command line in the account store. */
export function createSignInLinks({ query }: Database): SignInLinks {
  return {
    async insertSignInLink({ hash, accountId, expiresAtMs }, nowMs) {
      await retryWhileBusy(() => query.deleteFrom("sign_in_links").where("expires_at_ms", "<=", nowMs).execute());
      const row = { hash, account_id: accountId, expires_at_ms: expiresAtMs };
      await retryWhileBusy(() => query.insertInto("sign_in_links").values(row).execute());
    },

    async takeSignInLink(hash, nowMs) {
      const taken = query.deleteFrom("sign_in_links").where("hash", "=", hash).returningAll();
      const row = await retryWhileBusy(() => taken.executeTakeFirst());
      if (row === undefined || row.expires_at_ms <= nowMs) return undefined;
      return { hash, accountId: row.account_id, expiresAtMs: row.expires_at_ms };
    },
  };
}

type Invitations = Pick<
  AccountStore,
  "insertInvitation" | "findInvitation" | "listInvitations" | "acceptInvitation" | "removeInvitation"
>;

/** The address or the identity is taken. Rolls the transaction back, so that the invitation stays unused. */
class Taken extends Error {}

/** The invitations of the account store. */
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

    async acceptInvitation(hash, account, { atMs, identity }) {
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
          if (made.numInsertedOrUpdatedRows !== 1n) throw new Taken();
          if (identity !== undefined && !(await insertIdentity(transaction, account.id, identity))) throw new Taken();
          return true;
        });
      } catch (error) {
        if (error instanceof Taken) return false;
        throw error;
      }
    },

    async removeInvitation(id) {
      const removed = query.deleteFrom("invitations").where("id", "=", id);
      return (await retryWhileBusy(() => removed.executeTakeFirst())).numDeletedRows === 1n;
    },
  };
}
