import type { ColumnDataType, Kysely } from "kysely";
import type { Migration } from "../migration.ts";

const LIMITS = ["requests_per_minute", "tokens_per_minute", "concurrent_requests", "monthly_budget_micro_usd"] as const;

export const accounts: Migration = {
  name: "people who sign in, and limits of keys and accounts",
  async up(database) {
    const { schema } = database;
    for (const limit of LIMITS) {
      await addColumn(database, "accounts", [limit, "bigint"]);
      await addColumn(database, "api_keys", [limit, "bigint"]);
    }
    await addColumn(database, "api_keys", ["last_used_at_ms", "bigint"]);
    // Of a key that is no rotation's: nothing.
    await addColumn(database, "api_keys", ["line_id", "text"]);
    await schema.createIndex("api_keys_account").on("api_keys").column("account_id").execute();

    await addColumn(database, "accounts", ["email", "text"]);
    await schema
      .alterTable("accounts")
      .addColumn("role", "text", (column) => column.notNull().defaultTo("member"))
      .execute();
    await addColumn(database, "accounts", ["password_hash", "text"]);
    await addColumn(database, "accounts", ["disabled_at_ms", "bigint"]);
    await schema.createIndex("accounts_email").unique().on("accounts").column("email").execute();

    await schema
      .createTable("sessions")
      .addColumn("hash", "text", (column) => column.primaryKey())
      .addColumn("account_id", "text", (column) => column.notNull().references("accounts.id"))
      .addColumn("created_at_ms", "bigint", (column) => column.notNull())
      .addColumn("last_seen_at_ms", "bigint", (column) => column.notNull())
      .addColumn("authenticated_at_ms", "bigint", (column) => column.notNull())
      .execute();
    await schema.createIndex("sessions_account").on("sessions").column("account_id").execute();

    await schema
      .createTable("invitations")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("hash", "text", (column) => column.notNull().unique())
      .addColumn("email", "text")
      .addColumn("role", "text", (column) => column.notNull())
      .addColumn("created_by", "text", (column) => column.notNull())
      .addColumn("created_at_ms", "bigint", (column) => column.notNull())
      .addColumn("expires_at_ms", "bigint", (column) => column.notNull())
      .addColumn("used_at_ms", "bigint")
      .execute();

    await schema
      .createTable("throttles")
      .addColumn("subject", "text", (column) => column.primaryKey())
      .addColumn("count", "bigint", (column) => column.notNull())
      .addColumn("blocked_until_ms", "bigint", (column) => column.notNull())
      .addColumn("changed_at_ms", "bigint", (column) => column.notNull())
      .execute();

    await schema
      .createTable("security_events")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("at_ms", "bigint", (column) => column.notNull())
      .addColumn("type", "text", (column) => column.notNull())
      .addColumn("actor_id", "text")
      .addColumn("account_id", "text")
      .addColumn("network", "text")
      .addColumn("details", "text", (column) => column.notNull())
      .execute();
    await schema.createIndex("security_events_time").on("security_events").column("at_ms").execute();
    const byAccount = schema.createIndex("security_events_account").on("security_events");
    await byAccount.columns(["account_id", "at_ms"]).execute();
  },
};

/** SQLite adds one column at a time. */
async function addColumn(
  { schema }: Kysely<unknown>,
  table: string,
  [name, type]: readonly [string, ColumnDataType],
): Promise<void> {
  await schema.alterTable(table).addColumn(name, type).execute();
}
