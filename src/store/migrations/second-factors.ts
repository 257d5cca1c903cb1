import type { Migration } from "../migrations.ts";

/** Passkeys, authenticator apps with recovery codes, links for new passwords, and which sessions had a second factor. */
export const secondFactors: Migration = {
  name: "second factors, and links for new passwords",
  async up({ schema }) {
    await schema
      .createTable("passkeys")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("account_id", "text", (column) => column.notNull().references("accounts.id"))
      .addColumn("name", "text", (column) => column.notNull())
      .addColumn("public_key", "text", (column) => column.notNull())
      .addColumn("counter", "bigint", (column) => column.notNull())
      .addColumn("transports", "text", (column) => column.notNull())
      .addColumn("created_at_ms", "bigint", (column) => column.notNull())
      .addColumn("used_at_ms", "bigint")
      .execute();
    await schema.createIndex("passkeys_account").on("passkeys").column("account_id").execute();
    await schema
      .createTable("passkey_challenges")
      .addColumn("hash", "text", (column) => column.primaryKey())
      .addColumn("expires_at_ms", "bigint", (column) => column.notNull())
      .execute();
    await schema
      .createTable("totp_secrets")
      .addColumn("account_id", "text", (column) => column.primaryKey().references("accounts.id"))
      .addColumn("sealed", "text", (column) => column.notNull())
      .addColumn("last_step", "bigint", (column) => column.notNull())
      .addColumn("created_at_ms", "bigint", (column) => column.notNull())
      .execute();
    await schema
      .createTable("recovery_codes")
      .addColumn("account_id", "text", (column) => column.notNull().references("accounts.id"))
      .addColumn("hash", "text", (column) => column.notNull())
      .addPrimaryKeyConstraint("recovery_codes_primary", ["account_id", "hash"])
      .execute();
    await schema
      .createTable("password_reset_links")
      .addColumn("hash", "text", (column) => column.primaryKey())
      .addColumn("account_id", "text", (column) => column.notNull().references("accounts.id"))
      .addColumn("expires_at_ms", "bigint", (column) => column.notNull())
      .execute();
    await schema.alterTable("sessions").addColumn("second_factor", "integer").execute();
  },
};
