import type { AlertStore } from "../../alerts/alert-store.ts";
import type { Database } from "../database.ts";
import { retryWhileBusy } from "../store-error.ts";
import { toChannel, toFilterColumns } from "./alert-rows.ts";

/** The part of the AlertStore about channels. */
export function createChannelRows(
  database: Database,
): Pick<AlertStore, "channels" | "insertChannel" | "changeChannel" | "removeChannel" | "resealChannels"> {
  const { query } = database;
  return {
    async channels() {
      const found = query.selectFrom("alert_channels").selectAll().orderBy("created_at_ms").orderBy("id");
      return (await retryWhileBusy(() => found.execute())).map(toChannel);
    },

    insertChannel: ({ createdAtMs, createdBy, rules, leastSeverity, ...facts }, most) =>
      database.transaction(async (transaction) => {
        const { count } = await transaction
          .selectFrom("alert_channels")
          .select(({ fn }) => fn.countAll<number>().as("count"))
          .executeTakeFirstOrThrow();
        if (count >= most) return false;
        const row = {
          ...facts,
          created_at_ms: createdAtMs,
          created_by: createdBy ?? null,
          ...toFilterColumns({ rules, leastSeverity }),
        };
        await transaction.insertInto("alert_channels").values(row).execute();
        return true;
      }),

    async changeChannel(id, { name, ...filter }) {
      const changed = query
        .updateTable("alert_channels")
        .set({ name, ...toFilterColumns(filter) })
        .where("id", "=", id);
      return (await retryWhileBusy(() => changed.executeTakeFirst())).numUpdatedRows === 1n;
    },

    removeChannel: (id) =>
      database.transaction(async (transaction) => {
        const { numDeletedRows } = await transaction
          .deleteFrom("alert_channels")
          .where("id", "=", id)
          .executeTakeFirst();
        await transaction
          .updateTable("alert_deliveries")
          .set({ next_at_ms: null, problem: "The channel was removed." })
          .where("channel_id", "=", id)
          .where("next_at_ms", "is not", null)
          .execute();
        return numDeletedRows === 1n;
      }),

    resealChannels: (seal) =>
      database.transaction(async (transaction) => {
        const rows = await transaction.selectFrom("alert_channels").selectAll().execute();
        let resealed = 0;
        for (const row of rows) {
          const sealed = seal(toChannel(row));
          if (sealed === undefined) continue;
          await transaction.updateTable("alert_channels").set({ sealed }).where("id", "=", row.id).execute();
          resealed += 1;
        }
        return { resealed, unreadable: rows.length - resealed };
      }),
  };
}
