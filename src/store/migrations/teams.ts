import type { Migration } from "../migrations.ts";

/** Accounts without sign-in that own keys, and their members. */
export const teams: Migration = {
  name: "teams and their members",
  async up({ schema }) {
    await schema
      .alterTable("accounts")
      .addColumn("kind", "text", (column) => column.notNull().defaultTo("person"))
      .execute();
    await schema
      .createTable("team_members")
      .addColumn("team_id", "text", (column) => column.notNull().references("accounts.id"))
      .addColumn("account_id", "text", (column) => column.notNull().references("accounts.id"))
      .addColumn("role", "text", (column) => column.notNull())
      .addColumn("added_at_ms", "bigint", (column) => column.notNull())
      .addPrimaryKeyConstraint("team_members_primary", ["team_id", "account_id"])
      .execute();
    await schema.createIndex("team_members_account").on("team_members").column("account_id").execute();
  },
};
