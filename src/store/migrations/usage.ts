import { sql } from "kysely";
import type { Migration } from "../migration.ts";

export const usage: Migration = {
  name: "sums of usage by the hour",
  async up(database) {
    const { schema } = database;
    await schema
      .createTable("usage_hours")
      .addColumn("hour_ms", "bigint", (column) => column.notNull())
      .addColumn("account_id", "text", (column) => column.notNull())
      .addColumn("key_id", "text", (column) => column.notNull())
      .addColumn("model", "text", (column) => column.notNull())
      .addColumn("outcome", "text", (column) => column.notNull())
      .addColumn("completions", "bigint", (column) => column.notNull())
      .addColumn("partial", "bigint", (column) => column.notNull())
      .addColumn("estimated", "bigint", (column) => column.notNull())
      .addColumn("prompt_tokens", "bigint", (column) => column.notNull())
      .addColumn("cached_tokens", "bigint", (column) => column.notNull())
      .addColumn("completion_tokens", "bigint", (column) => column.notNull())
      .addColumn("reasoning_tokens", "bigint", (column) => column.notNull())
      .addColumn("image_tokens", "bigint", (column) => column.notNull())
      .addColumn("cost_micro_usd", "bigint", (column) => column.notNull())
      .addPrimaryKeyConstraint("usage_hours_primary", ["hour_ms", "account_id", "key_id", "model", "outcome"])
      .execute();
    const byAccount = schema.createIndex("usage_hours_account").on("usage_hours");
    await byAccount.columns(["account_id", "hour_ms"]).execute();
    const byKey = schema.createIndex("usage_hours_key").on("usage_hours");
    await byKey.columns(["key_id", "hour_ms"]).execute();
    // As it was when this step was written, whatever becomes of how entries are added up later.
    await sql`insert into usage_hours
      select started_at_ms - started_at_ms % 3600000, account_id, key_id,
        substr(coalesce(served_model, requested_model), 1, 500), outcome,
        count(*), sum(partial), sum(estimated), sum(prompt_tokens), sum(cached_tokens), sum(completion_tokens),
        sum(reasoning_tokens), sum(image_tokens), sum(cost_micro_usd)
      from completions group by 1, 2, 3, 4, 5`.execute(database);
  },
};
