import { randomUUID } from "node:crypto";
import type { AlertStore } from "../../alerts/alert-store.ts";
import { type Database, skipLocked } from "../database.ts";
import type { AlertDeliveryRow } from "../schema.ts";
import { retryWhileBusy } from "../store-error.ts";
import { toDelivery } from "./alert-rows.ts";

/** The part of the AlertStore about messages. */
export function createDeliveryRows(
  database: Database,
): Pick<AlertStore, "deliveries" | "beginTest" | "dueChannels" | "claimDeliveries" | "endDelivery"> {
  const { query } = database;
  return {
    async deliveries(alertIds) {
      if (alertIds.length === 0) return [];
      const found = query
        .selectFrom("alert_deliveries")
        .selectAll()
        .where("alert_id", "in", [...alertIds])
        .orderBy("created_at_ms")
        .orderBy("id");
      return (await retryWhileBusy(() => found.execute())).map(toDelivery);
    },

    async beginTest({ id, name }, nowMs) {
      const row: AlertDeliveryRow = {
        id: randomUUID(),
        alert_id: null,
        kind: "test",
        channel_id: id,
        recipient: name,
        created_at_ms: nowMs,
        attempts: 1,
        // Not retried: the caller of a test waits for its outcome.
        next_at_ms: null,
        sent_at_ms: null,
        problem: "",
      };
      await retryWhileBusy(() => query.insertInto("alert_deliveries").values(row).execute());
      return toDelivery(row);
    },

    async dueChannels(nowMs) {
      const due = query.selectFrom("alert_deliveries").select("channel_id").distinct().where("next_at_ms", "<=", nowMs);
      return (await retryWhileBusy(() => due.execute())).map(({ channel_id }) => channel_id ?? undefined);
    },

    async claimDeliveries({ channelId, nowMs, untilMs, limit }) {
      return database.transaction(async (transaction) => {
        const due = transaction
          .selectFrom("alert_deliveries")
          .selectAll()
          .where("next_at_ms", "<=", nowMs)
          .where("channel_id", channelId === undefined ? "is" : "=", channelId ?? null)
          .orderBy("next_at_ms")
          .limit(limit);
        const rows = await skipLocked(database, due).execute();
        if (rows.length === 0) return [];
        await transaction
          .updateTable("alert_deliveries")
          .set(({ eb }) => ({ next_at_ms: untilMs, attempts: eb("attempts", "+", 1) }))
          .where(
            "id",
            "in",
            rows.map(({ id }) => id),
          )
          .execute();
        return rows.map((row) => toDelivery({ ...row, attempts: row.attempts + 1, next_at_ms: untilMs }));
      });
    },

    async endDelivery(id, { nextAtMs, sentAtMs, problem }) {
      const change = query
        .updateTable("alert_deliveries")
        .set({ next_at_ms: nextAtMs ?? null, sent_at_ms: sentAtMs ?? null, problem })
        .where("id", "=", id);
      await retryWhileBusy(() => change.execute());
    },
  };
}
