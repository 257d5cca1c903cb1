import type { Kysely } from "kysely";
import type { Migration } from "../migration.ts";

export const keys: Migration = {
  name: "accounts and API keys",
  async up(database) {
    const { schema } = database;
    await schema
      .createTable("accounts")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("name", "text", (column) => column.notNull())
      .addColumn("created_at_ms", "bigint", (column) => column.notNull())
      .execute();
    await schema
      .createTable("api_keys")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("account_id", "text", (column) => column.notNull().references("accounts.id"))
      .addColumn("name", "text", (column) => column.notNull())
      .addColumn("hash", "text", (column) => column.notNull().unique())
      .addColumn("display", "text", (column) => column.notNull())
      .addColumn("models", "text")
      .addColumn("capabilities", "text", (column) => column.notNull())
      .addColumn("created_at_ms", "bigint", (column) => column.notNull())
      .addColumn("expires_at_ms", "bigint")
      .addColumn("revoked_at_ms", "bigint")
      .addColumn("replaced_by", "text")
      .execute();
    await (database as Kysely<FirstTables>)
      .insertInto("accounts")
      .values({ id: "acct_default", name: "Default", created_at_ms: Date.now() })
      .execute();
  },
};

/** The tables as this first step sees them, whatever becomes of them later. */
interface FirstTables {
  readonly accounts: { readonly id: string; readonly name: string; readonly created_at_ms: number };
}
