import type { Migration } from "../migration.ts";

export const sessions: Migration = {
  name: "where sessions began, and lists of keys and accounts in pages",
  async up({ schema }) {
    await schema.alterTable("sessions").addColumn("network", "text").execute();
    await schema.alterTable("sessions").addColumn("browser", "text").execute();
    await schema.createIndex("api_keys_created").on("api_keys").columns(["created_at_ms", "id"]).execute();
    await schema.createIndex("accounts_created").on("accounts").columns(["created_at_ms", "id"]).execute();
  },
};
