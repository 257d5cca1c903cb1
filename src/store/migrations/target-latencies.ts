import { sql } from "kysely";
import type { Migration } from "../migrations.ts";

/** Upper bounds of buckets, in milliseconds. */
const BOUNDS = [50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 120_000, 300_000, "more"];

/** Latencies of attempts at upstream models by the half hour, as histograms with a column for each bucket. */
export const targetLatencies: Migration = {
  name: "latencies of upstream models",
  async up({ schema }, kind) {
    const columns = ["first_content", "duration"].flatMap((measure) => BOUNDS.map((bound) => `${measure}_${bound}`));
    const named = schema
      .createTable("target_latencies")
      .addColumn("target", "text", (column) => column.notNull())
      .addColumn("start_ms", "bigint", (column) => column.notNull());
    const table = columns
      .reduce((before, name) => before.addColumn(name, "bigint", (column) => column.notNull()), named)
      .addPrimaryKeyConstraint("target_latencies_primary", ["target", "start_ms"]);
    // SQLite then keeps the rows in the order of the key, in which a history reads them.
    await (kind === "sqlite" ? table.modifyEnd(sql`without rowid`) : table).execute();
    await schema.createIndex("target_latencies_start").on("target_latencies").column("start_ms").execute();
  },
};
