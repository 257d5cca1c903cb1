import { sql } from "kysely";
import type { Migration } from "../migrations.ts";

/** Roles beyond administrators and members. One administrator becomes the owner: the first account, or the oldest who can sign in. */
export const roles: Migration = {
  name: "owners and viewers",
  async up(database) {
    for (const table of ["accounts", "invitations"])
      await database.schema.alterTable(table).addColumn("exact_role", "text").execute();
    await sql`update accounts set exact_role = 'owner' where id = (
      select id from accounts
      where role = 'administrator' and password_hash is not null and disabled_at_ms is null
      order by case when id = 'acct_default' then 0 else 1 end, created_at_ms, id
      limit 1
    )`.execute(database);
  },
};
