import type { Migration } from "../migration.ts";

export const rates: Migration = {
  name: "rates and concurrency that replicas share",
  async up({ schema }) {
    await schema
      .createTable("rate_states")
      .addColumn("subject", "text", (column) => column.primaryKey())
      .addColumn("state", "text")
      .execute();
    await schema
      .createTable("replicas")
      .addColumn("name", "text", (column) => column.primaryKey())
      .addColumn("seen_at_ms", "bigint", (column) => column.notNull())
      .execute();
  },
};
