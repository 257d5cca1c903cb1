import type { Migration } from "../migration.ts";

export const segments: Migration = {
  name: "entries of the ledger that are durable and not in its tables yet",
  async up({ schema }) {
    await schema
      .createTable("ledger_segments")
      .addColumn("id", "integer", (column) => column.primaryKey())
      .addColumn("entries", "text", (column) => column.notNull())
      .execute();
  },
};
