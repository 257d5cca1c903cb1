import { sql } from "kysely";
import type { Migration } from "../migrations.ts";

/** Attempts at upstream models by the minute and the hour, and the state of each process. */
export const targetHistory: Migration = {
  name: "attempts at upstream models, and the state of replicas",
  async up({ schema }, kind) {
    const attempts = schema
      .createTable("target_attempts")
      .addColumn("step_ms", "bigint", (column) => column.notNull())
      .addColumn("target", "text", (column) => column.notNull())
      .addColumn("start_ms", "bigint", (column) => column.notNull())
      .addColumn("outcome", "text", (column) => column.notNull())
      .addColumn("attempts", "bigint", (column) => column.notNull())
      .addPrimaryKeyConstraint("target_attempts_primary", ["step_ms", "target", "start_ms", "outcome"]);
    // SQLite then keeps the rows in the order of the key, in which a history reads them.
    await (kind === "sqlite" ? attempts.modifyEnd(sql`without rowid`) : attempts).execute();
    await schema.createIndex("target_attempts_start").on("target_attempts").columns(["step_ms", "start_ms"]).execute();
    await schema
      .createTable("replica_states")
      .addColumn("name", "text", (column) => column.primaryKey())
      .addColumn("written_at_ms", "bigint", (column) => column.notNull())
      .addColumn("state", "text", (column) => column.notNull())
      .execute();
  },
};
