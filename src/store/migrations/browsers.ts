import type { Migration } from "../migration.ts";

export const browsers: Migration = {
  name: "browsers in which accounts have signed in, and tokens for the first administrator",
  async up({ schema }) {
    await schema
      .createTable("known_browsers")
      .addColumn("hash", "text", (column) => column.notNull())
      .addColumn("account_id", "text", (column) => column.notNull().references("accounts.id"))
      .addColumn("signed_in_at_ms", "bigint", (column) => column.notNull())
      .addPrimaryKeyConstraint("known_browsers_key", ["hash", "account_id"])
      .execute();
    await schema.createIndex("known_browsers_account").on("known_browsers").column("account_id").execute();
    await schema
      .createTable("setup_tokens")
      .addColumn("hash", "text", (column) => column.primaryKey())
      .addColumn("expires_at_ms", "bigint", (column) => column.notNull())
      .execute();
  },
};
