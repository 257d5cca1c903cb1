import { sql } from "kysely";
import type { Migration } from "../migrations.ts";

/** Keys of programs for administration, roles that owners make, and receivers of the audit log. */
export const administrationKeys: Migration = {
  name: "administration keys, custom roles and streams of the audit log",
  async up({ schema }) {
    await schema
      .createTable("administration_keys")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("hash", "text", (column) => column.notNull().unique())
      .addColumn("display", "text", (column) => column.notNull())
      .addColumn("name", "text", (column) => column.notNull())
      .addColumn("account_id", "text", (column) => column.notNull().references("accounts.id"))
      .addColumn("permissions", "text", (column) => column.notNull())
      .addColumn("created_at_ms", "bigint", (column) => column.notNull())
      .addColumn("expires_at_ms", "bigint")
      .addColumn("revoked_at_ms", "bigint")
      .addColumn("last_used_at_ms", "bigint")
      .execute();
    const ofAccount = schema.createIndex("administration_keys_account").on("administration_keys");
    await ofAccount.column("account_id").execute();
    await schema
      .createTable("custom_roles")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("name", "text", (column) => column.notNull())
      .addColumn("permissions", "text", (column) => column.notNull())
      .addColumn("base", "text", (column) => column.notNull())
      .addColumn("created_at_ms", "bigint", (column) => column.notNull())
      .execute();
    const byName = schema.createIndex("custom_roles_name").unique().on("custom_roles");
    await byName.expression(sql`lower(name)`).execute();
    await schema
      .createTable("audit_streams")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("target", "text", (column) => column.notNull())
      .addColumn("sealed", "text", (column) => column.notNull())
      .addColumn("sequence", "bigint", (column) => column.notNull())
      .addColumn("created_at_ms", "bigint", (column) => column.notNull())
      .addColumn("created_by", "text")
      .addColumn("claimed_by", "text")
      .addColumn("claimed_until_ms", "bigint", (column) => column.notNull())
      .addColumn("failures", "integer", (column) => column.notNull())
      .addColumn("next_at_ms", "bigint", (column) => column.notNull())
      .addColumn("sent_at_ms", "bigint")
      .addColumn("problem", "text", (column) => column.notNull())
      .execute();
  },
};
