import type { Migration } from "../migrations.ts";

/** Identities at OpenID providers, links of the command line, and the method with which a session began. */
export const identities: Migration = {
  name: "identities at OpenID providers, and links that sign in",
  async up({ schema }) {
    await schema
      .createTable("identities")
      .addColumn("issuer", "text", (column) => column.notNull())
      .addColumn("subject", "text", (column) => column.notNull())
      .addColumn("account_id", "text", (column) => column.notNull().references("accounts.id"))
      .addColumn("linked_at_ms", "bigint", (column) => column.notNull())
      .addPrimaryKeyConstraint("identities_primary", ["issuer", "subject"])
      .addUniqueConstraint("identities_account", ["account_id", "issuer"])
      .execute();
    await schema
      .createTable("sign_in_links")
      .addColumn("hash", "text", (column) => column.primaryKey())
      .addColumn("account_id", "text", (column) => column.notNull().references("accounts.id"))
      .addColumn("expires_at_ms", "bigint", (column) => column.notNull())
      .execute();
    for (const name of ["method", "id_token"]) await schema.alterTable("sessions").addColumn(name, "text").execute();
  },
};
