import { sql } from "kysely";
import type { Migration } from "../migrations.ts";

/** Alerts, the messages about them, and where messages are sent to. */
export const alerts: Migration = {
  name: "alerts, their messages, channels and thresholds",
  async up({ schema }) {
    await schema
      .createTable("alerts")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("rule", "text", (column) => column.notNull())
      .addColumn("severity", "text", (column) => column.notNull())
      .addColumn("subject", "text", (column) => column.notNull())
      .addColumn("period", "text", (column) => column.notNull())
      .addColumn("account_id", "text")
      .addColumn("title", "text", (column) => column.notNull())
      .addColumn("detail", "text", (column) => column.notNull())
      .addColumn("opened_at_ms", "bigint", (column) => column.notNull())
      .addColumn("seen_at_ms", "bigint", (column) => column.notNull())
      .addColumn("resolved_at_ms", "bigint")
      .addColumn("acknowledged_at_ms", "bigint")
      .addColumn("acknowledged_by", "text")
      .addColumn("muted_until_ms", "bigint")
      .addColumn("muted_by", "text")
      .execute();
    // Of several processes that open the same alert one succeeds.
    const isOpen = sql<boolean>`resolved_at_ms is null`;
    const open = schema.createIndex("alerts_open").unique().on("alerts").columns(["rule", "subject", "period"]);
    await open.where(isOpen).execute();
    await schema.createIndex("alerts_time").on("alerts").column("opened_at_ms").execute();
    await schema.createIndex("alerts_account").on("alerts").columns(["account_id", "opened_at_ms"]).execute();
    await schema.createIndex("alerts_resolved").on("alerts").column("resolved_at_ms").execute();
    await schema.createIndex("alerts_muted").on("alerts").column("muted_until_ms").execute();

    await schema
      .createTable("alert_channels")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("kind", "text", (column) => column.notNull())
      .addColumn("name", "text", (column) => column.notNull())
      .addColumn("target", "text", (column) => column.notNull())
      .addColumn("sealed", "text", (column) => column.notNull())
      .addColumn("created_at_ms", "bigint", (column) => column.notNull())
      .addColumn("created_by", "text")
      .execute();

    await schema
      .createTable("alert_deliveries")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("alert_id", "text")
      .addColumn("kind", "text", (column) => column.notNull())
      .addColumn("channel_id", "text")
      .addColumn("recipient", "text", (column) => column.notNull())
      .addColumn("created_at_ms", "bigint", (column) => column.notNull())
      .addColumn("attempts", "integer", (column) => column.notNull())
      .addColumn("next_at_ms", "bigint")
      .addColumn("sent_at_ms", "bigint")
      .addColumn("problem", "text", (column) => column.notNull())
      .execute();
    await schema.createIndex("alert_deliveries_alert").on("alert_deliveries").column("alert_id").execute();
    await schema.createIndex("alert_deliveries_next").on("alert_deliveries").column("next_at_ms").execute();

    await schema
      .createTable("alert_settings")
      .addColumn("name", "text", (column) => column.primaryKey())
      .addColumn("value", "text", (column) => column.notNull())
      .execute();
  },
};
