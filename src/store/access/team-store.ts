import type { Kysely } from "kysely";
import type { CallerAccount } from "../../access/account-store.ts";
import type { Membership, TeamRole, TeamStore } from "../../access/team-store.ts";
import { type Database, lockRows } from "../database.ts";
import type { Schema } from "../schema.ts";
import { retryWhileBusy } from "../store-error.ts";
import { JOINED_ROLE, toAccountRecord, toJoinedRole } from "./account-rows.ts";

/** The members of teams in the database. */
export function createTeams(database: Database): TeamStore {
  const { query } = database;
  return {
    async listTeams(page, memberId) {
      let oldest = query
        .selectFrom("accounts")
        .selectAll("accounts")
        .select((team) =>
          team
            .selectFrom("team_members")
            .select(({ fn }) => fn.countAll<number>().as("count"))
            .whereRef("team_members.team_id", "=", "accounts.id")
            .as("members"),
        )
        .where("kind", "<>", "person")
        .orderBy("created_at_ms")
        .orderBy("id")
        .limit(page.limit);
      if (memberId !== undefined) {
        const own = query.selectFrom("team_members").select("team_id").where("account_id", "=", memberId);
        oldest = oldest.where("id", "in", own);
      }
      if (page.after !== undefined) {
        const { createdAtMs, id } = page.after;
        oldest = oldest
          .where("created_at_ms", ">=", createdAtMs)
          .where((team) => team.or([team("created_at_ms", ">", createdAtMs), team("id", ">", id)]));
      }
      const rows = await retryWhileBusy(() => oldest.execute());
      return rows.map(({ members, ...row }) => ({ account: toAccountRecord(row), members: Number(members) }));
    },

    memberships: (accountId) => retryWhileBusy(() => findMemberships(query, accountId)),

    async members(teamId) {
      const found = query
        .selectFrom("team_members")
        .innerJoin("accounts", "accounts.id", "team_members.account_id")
        .select(["accounts.id", "accounts.name", "accounts.email", "accounts.disabled_at_ms"])
        .select(["team_members.role", "team_members.added_at_ms"])
        .where("team_id", "=", teamId)
        .orderBy("accounts.name")
        .orderBy("accounts.id");
      const rows = await retryWhileBusy(() => found.execute());
      return rows.map((row) => ({
        id: row.id,
        name: row.name,
        email: row.email ?? undefined,
        disabledAtMs: row.disabled_at_ms ?? undefined,
        role: row.role as TeamRole,
        addedAtMs: row.added_at_ms,
      }));
    },

    changeMember({ teamId, accountId, role, atMs }, { actor, most }) {
      return database.transaction(async (transaction) => {
        // Simultaneous changes of a team wait here, and so do those of the person: by ID, so that none waits for another in a circle.
        const both = transaction
          .selectFrom("accounts")
          .selectAll()
          .where("id", "in", [teamId, accountId])
          .orderBy("id");
        const rows = await lockRows(database, both).execute();
        const [team, person] = [teamId, accountId].map((id) => rows.find((row) => row.id === id));
        if (team === undefined || team.kind === "person") return "unknown team";
        const ofTeam = transaction.selectFrom("team_members").selectAll().where("team_id", "=", teamId);
        const members = await ofTeam.execute();
        const before = members.find(({ account_id }) => account_id === accountId)?.role as TeamRole | undefined;
        if (actor !== undefined) {
          const acting = await findCaller(transaction, actor.id);
          if (acting === undefined || acting.account.disabledAtMs !== undefined || !actor.mayChange(acting, before))
            return "denied";
        }
        if (person?.kind !== "person" || (role !== undefined && person.disabled_at_ms !== null))
          return "unknown person";
        if (role === undefined) {
          await transaction
            .deleteFrom("team_members")
            .where("team_id", "=", teamId)
            .where("account_id", "=", accountId)
            .execute();
          return { before };
        }
        if (before === undefined) {
          if (members.length >= most.members) return "too many members";
          if ((await findMemberships(transaction, accountId)).length >= most.teams) return "too many teams";
        }
        await transaction
          .insertInto("team_members")
          .values({ team_id: teamId, account_id: accountId, role, added_at_ms: atMs })
          .onConflict((conflict) => conflict.columns(["team_id", "account_id"]).doUpdateSet({ role }))
          .execute();
        return { before };
      });
    },
  };
}

async function findMemberships(query: Kysely<Schema>, accountId: string): Promise<Membership[]> {
  const rows = await query
    .selectFrom("team_members")
    .innerJoin("accounts", "accounts.id", "team_members.team_id")
    .select(["team_id", "name", "team_members.role"])
    .where("account_id", "=", accountId)
    .orderBy("name")
    .orderBy("team_id")
    .execute();
  return rows.map(({ team_id, name, role }) => ({ teamId: team_id, teamName: name, role: role as TeamRole }));
}

/** An account with the memberships and the custom role that decide its permissions. */
export async function findCaller(query: Kysely<Schema>, id: string): Promise<CallerAccount | undefined> {
  const account = query
    .selectFrom("accounts")
    .leftJoin("custom_roles", "custom_roles.id", "accounts.exact_role")
    .selectAll("accounts")
    .select(JOINED_ROLE)
    .where("accounts.id", "=", id);
  const row = await account.executeTakeFirst();
  return row && { account: toAccountRecord(row), ...toJoinedRole(row), memberships: await findMemberships(query, id) };
}
