import type { Migration } from "../migration.ts";

export const limitedKeys: Migration = {
  name: "which keys an administrator has limited",
  async up({ schema }) {
    // Who made the keys there are, and chose their limits, is not known: as before, their members may change them.
    await schema
      .alterTable("api_keys")
      .addColumn("limited_by_administrator", "integer", (column) => column.notNull().defaultTo(0))
      .execute();
    await schema.createIndex("api_keys_line").on("api_keys").column("line_id").execute();
  },
};
