import type { Migration } from "../migration.ts";

export const ledger: Migration = {
  name: "the ledger, what months have spent, and what budgets hold",
  async up({ schema }) {
    // Without references: an entry is written whatever has become of its key and account.
    await schema
      .createTable("completions")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("request_id", "text", (column) => column.notNull())
      .addColumn("account_id", "text", (column) => column.notNull())
      .addColumn("key_id", "text", (column) => column.notNull())
      .addColumn("entrance", "text", (column) => column.notNull())
      .addColumn("started_at_ms", "bigint", (column) => column.notNull())
      .addColumn("ended_at_ms", "bigint", (column) => column.notNull())
      .addColumn("requested_model", "text", (column) => column.notNull())
      .addColumn("served_model", "text")
      .addColumn("streamed", "integer", (column) => column.notNull())
      .addColumn("outcome", "text", (column) => column.notNull())
      .addColumn("attempts", "text", (column) => column.notNull())
      .addColumn("prompt_tokens", "bigint", (column) => column.notNull())
      .addColumn("cached_tokens", "bigint", (column) => column.notNull())
      .addColumn("completion_tokens", "bigint", (column) => column.notNull())
      .addColumn("reasoning_tokens", "bigint", (column) => column.notNull())
      .addColumn("image_tokens", "bigint", (column) => column.notNull())
      .addColumn("cost_micro_usd", "bigint", (column) => column.notNull())
      .addColumn("duration_ms", "double precision", (column) => column.notNull())
      .addColumn("first_content_ms", "double precision")
      .addColumn("partial", "integer", (column) => column.notNull())
      .addColumn("estimated", "integer", (column) => column.notNull())
      .execute();
    await schema.createIndex("completions_time").on("completions").column("started_at_ms").execute();
    const byAccount = schema.createIndex("completions_account").on("completions");
    await byAccount.columns(["account_id", "started_at_ms"]).execute();
    const byKey = schema.createIndex("completions_key").on("completions");
    await byKey.columns(["key_id", "started_at_ms"]).execute();

    await schema
      .createTable("spending")
      .addColumn("subject", "text", (column) => column.notNull())
      .addColumn("month", "text", (column) => column.notNull())
      .addColumn("spent_micro_usd", "bigint", (column) => column.notNull())
      .addColumn("held_micro_usd", "bigint", (column) => column.notNull())
      .addPrimaryKeyConstraint("spending_primary", ["subject", "month"])
      .execute();

    await schema
      .createTable("budget_holds")
      .addColumn("id", "text", (column) => column.notNull())
      .addColumn("subject", "text", (column) => column.notNull())
      .addColumn("month", "text", (column) => column.notNull())
      .addColumn("amount_micro_usd", "bigint", (column) => column.notNull())
      .addColumn("expires_at_ms", "bigint", (column) => column.notNull())
      .addPrimaryKeyConstraint("budget_holds_primary", ["id", "subject"])
      .execute();
    await schema.createIndex("budget_holds_expiry").on("budget_holds").column("expires_at_ms").execute();
  },
};
