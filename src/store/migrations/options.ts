import type { Migration } from "../migration.ts";

export const options: Migration = {
  name: "what a key's requests may ask of providers beside tokens",
  async up({ schema }) {
    await schema.alterTable("api_keys").addColumn("options", "text").execute();
  },
};
