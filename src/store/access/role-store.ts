import { sql } from "kysely";
import type { RoleStore } from "../../access/role-store.ts";
import type { Database } from "../database.ts";
import { retryWhileBusy } from "../store-error.ts";
import { roleOf, toCustomRole, toCustomRoleRow } from "./account-rows.ts";

/** The custom roles in the database. */
export function createRoles(database: Database): RoleStore {
  const { query } = database;
  return {
    async roles() {
      const all = query.selectFrom("custom_roles").selectAll().orderBy("name").orderBy("id");
      return (await retryWhileBusy(() => all.execute())).map(toCustomRole);
    },

    insertRole: (role, most) =>
      database.transaction(async (transaction) => {
        const { count } = await transaction
          .selectFrom("custom_roles")
          .select(({ fn }) => fn.countAll<number>().as("count"))
          .executeTakeFirstOrThrow();
        if (count >= most) return "too many";
        const insertion = transaction
          .insertInto("custom_roles")
          .values(toCustomRoleRow(role))
          .onConflict((conflict) => conflict.doNothing());
        return (await insertion.executeTakeFirst()).numInsertedOrUpdatedRows === 1n ? "done" : "name taken";
      }),

    changeRole: (role) =>
      database.transaction(async (transaction) => {
        const others = transaction.selectFrom("custom_roles").select("id").where("id", "<>", role.id);
        const taken = others.where(sql`lower(name)`, "=", sql`lower(${role.name})`);
        if ((await taken.executeTakeFirst()) !== undefined) return "name taken";
        const update = transaction.updateTable("custom_roles").set(toCustomRoleRow(role)).where("id", "=", role.id);
        return (await update.executeTakeFirst()).numUpdatedRows === 1n ? "done" : "unknown role";
      }),

    removeRole: (id) =>
      database.transaction(async (transaction) => {
        // A role that is given in the same moment allows nothing afterwards: `permissionsOf`.
        const accounts = transaction.selectFrom("accounts").where(roleOf("accounts"), "=", id);
        const invitations = transaction
          .selectFrom("invitations")
          .where("exact_role", "=", id)
          .where("used_at_ms", "is", null);
        let inUse = 0;
        for (const holders of [accounts, invitations]) {
          const { count } = await (holders as typeof accounts)
            .select(({ fn }) => fn.countAll<number>().as("count"))
            .executeTakeFirstOrThrow();
          inUse += count;
        }
        if (inUse === 0) await transaction.deleteFrom("custom_roles").where("id", "=", id).execute();
        return inUse;
      }),
  };
}
