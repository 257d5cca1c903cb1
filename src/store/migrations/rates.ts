import type { Migration } from "../migration.ts";

export const rates: Migration = {
  name: "rates and concurrency that replicas share",
  async up({ schema }) {
    await schema
      .createTable("rate_states")
      .addColumn("subject", "text", (column) => column.primaryKey())
      .addColumn("state", "text")
      .addColumn("idle_at_ms", "bigint", (column) => column.notNull())
      .execute();
    await schema.createIndex("rate_states_idle").on("rate_states").column("idle_at_ms").execute();
    await schema
      .createTable("replicas")
      .addColumn("name", "text", (column) => column.primaryKey())
      .addColumn("seen_at_ms", "bigint", (column) => column.notNull())
      .execute();
  },
};
