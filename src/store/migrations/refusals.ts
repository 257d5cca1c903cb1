import { type CreateTableBuilder, type Kysely, sql } from "kysely";
import type { Migration } from "../migrations.ts";

const SUMS = [
  "completions",
  "partial",
  "estimated",
  "prompt_tokens",
  "cached_tokens",
  "completion_tokens",
  "reasoning_tokens",
  "image_tokens",
  "cost_micro_usd",
  "own_cost_micro_usd",
  "refused",
];

/**
 * Counts of refused requests in the sums of usage, sums by the minute, and samples of refused requests. In PostgreSQL the new tables
 * have a partition for each day.
 */
export const refusals: Migration = {
  name: "refused requests, usage by the minute, and keys by their expiry",
  async up(database, kind) {
    await database.schema
      .alterTable("usage_hours")
      .addColumn("refused", "bigint", (column) => column.notNull().defaultTo(0))
      .execute();
    await createMinutes(database, kind);
    await createSamples(database, kind);
    await database.schema.createIndex("api_keys_expiry").on("api_keys").column("expires_at_ms").execute();
  },
};

async function createMinutes({ schema }: Kysely<unknown>, kind: "sqlite" | "postgres"): Promise<void> {
  let table: CreateTableBuilder<string, string> = schema
    .createTable("usage_minutes")
    .addColumn("minute_ms", "bigint", (column) => column.notNull())
    .addColumn("account_id", "text", (column) => column.notNull())
    .addColumn("key_id", "text", (column) => column.notNull())
    .addColumn("model", "text", (column) => column.notNull())
    .addColumn("outcome", "text", (column) => column.notNull());
  for (const sum of SUMS) table = table.addColumn(sum, "bigint", (column) => column.notNull());
  table = table.addPrimaryKeyConstraint("usage_minutes_primary", [
    "minute_ms",
    "account_id",
    "key_id",
    "model",
    "outcome",
  ]);
  await byDay(table, kind, "minute_ms").execute();
  const byAccount = schema.createIndex("usage_minutes_account").on("usage_minutes");
  await byAccount.columns(["account_id", "minute_ms"]).execute();
  await schema.createIndex("usage_minutes_key").on("usage_minutes").columns(["key_id", "minute_ms"]).execute();
}

async function createSamples({ schema }: Kysely<unknown>, kind: "sqlite" | "postgres"): Promise<void> {
  const table = schema
    .createTable("refusals")
    .addColumn("id", "text", (column) => column.notNull())
    .addColumn("ended_at_ms", "bigint", (column) => column.notNull())
    .addColumn("request_id", "text", (column) => column.notNull())
    .addColumn("account_id", "text", (column) => column.notNull())
    .addColumn("key_id", "text", (column) => column.notNull())
    .addColumn("requested_model", "text", (column) => column.notNull())
    .addColumn("outcome", "text", (column) => column.notNull())
    .addColumn("message", "text", (column) => column.notNull())
    .addColumn("entry", "text", (column) => column.notNull())
    .addPrimaryKeyConstraint("refusals_primary", ["id", "ended_at_ms"]);
  await byDay(table, kind, "ended_at_ms").execute();
  await schema.createIndex("refusals_end").on("refusals").column("ended_at_ms").execute();
  await schema.createIndex("refusals_account_end").on("refusals").columns(["account_id", "ended_at_ms"]).execute();
  await schema.createIndex("refusals_key_end").on("refusals").columns(["key_id", "ended_at_ms"]).execute();
  await schema.createIndex("refusals_request").on("refusals").columns(["request_id", "ended_at_ms"]).execute();
}

function byDay<C extends string>(
  table: CreateTableBuilder<string, C>,
  kind: "sqlite" | "postgres",
  column: string,
): CreateTableBuilder<string, C> {
  return kind === "sqlite" ? table : table.modifyEnd(sql`partition by range (${sql.ref(column)})`);
}
