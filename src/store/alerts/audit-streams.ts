import type { AuditStreamRecord, AuditStreamStore } from "../../alerts/audit-stream-store.ts";
import { type Database, lockRows } from "../database.ts";
import type { AuditStreamRow } from "../schema.ts";
import { retryWhileBusy } from "../store-error.ts";

/** The AuditStreamStore in the database. */
export function createAuditStreams(database: Database): AuditStreamStore {
  const { query } = database;
  return {
    async streams() {
      const all = query.selectFrom("audit_streams").selectAll().orderBy("created_at_ms").orderBy("id");
      return (await retryWhileBusy(() => all.execute())).map(toStream);
    },

    insertStream: ({ id, target, sealed, createdAtMs, createdBy }, most) =>
      database.transaction(async (transaction) => {
        // Simultaneous insertions wait here; no entry is appended meanwhile.
        const chain = transaction.selectFrom("audit_chain").select("head_sequence").where("id", "=", 1);
        const { head_sequence: sequence } = await lockRows(database, chain).executeTakeFirstOrThrow();
        const { count } = await transaction
          .selectFrom("audit_streams")
          .select(({ fn }) => fn.countAll<number>().as("count"))
          .executeTakeFirstOrThrow();
        if (count >= most) return undefined;
        const row: AuditStreamRow = {
          id,
          target,
          sealed,
          sequence,
          created_at_ms: createdAtMs,
          created_by: createdBy ?? null,
          claimed_by: null,
          claimed_until_ms: 0,
          failures: 0,
          next_at_ms: 0,
          sent_at_ms: null,
          problem: "",
        };
        await transaction.insertInto("audit_streams").values(row).execute();
        return toStream(row);
      }),

    async removeStream(id) {
      const removal = query.deleteFrom("audit_streams").where("id", "=", id).returningAll();
      const row = await retryWhileBusy(() => removal.executeTakeFirst());
      return row && toStream(row);
    },

    async claimStreams({ nowMs, untilMs, by }) {
      const due = query
        .selectFrom("audit_streams")
        .select("audit_streams.id")
        .innerJoin("audit_chain", (on) => on.onRef("audit_chain.head_sequence", ">", "audit_streams.sequence"))
        .where("next_at_ms", "<=", nowMs)
        .where("claimed_until_ms", "<=", nowMs);
      // Nearly always there are none: no write for that.
      const ids = (await retryWhileBusy(() => due.execute())).map(({ id }) => id);
      if (ids.length === 0) return [];
      const claim = query
        .updateTable("audit_streams")
        .set({ claimed_by: by, claimed_until_ms: untilMs })
        .where("id", "in", ids)
        // A condition on the row itself: PostgreSQL checks it again when it has waited for another process.
        .where("next_at_ms", "<=", nowMs)
        .where("claimed_until_ms", "<=", nowMs)
        .returningAll();
      return (await retryWhileBusy(() => claim.execute())).map(toStream);
    },

    async noteProgress(id, by, { claimedUntilMs, sequence, failures, nextAtMs, sentAtMs, problem }) {
      const note = query
        .updateTable("audit_streams")
        .set({
          claimed_until_ms: claimedUntilMs,
          ...(claimedUntilMs === 0 && { claimed_by: null }),
          ...(sequence !== undefined && { sequence }),
          ...(failures !== undefined && { failures }),
          ...(nextAtMs !== undefined && { next_at_ms: nextAtMs }),
          ...(sentAtMs !== undefined && { sent_at_ms: sentAtMs }),
          ...(problem !== undefined && { problem }),
        })
        .where("id", "=", id)
        .where("claimed_by", "=", by);
      return (await retryWhileBusy(() => note.executeTakeFirst())).numUpdatedRows === 1n;
    },

    resealStreams: (seal) =>
      database.transaction(async (transaction) => {
        const rows = await transaction.selectFrom("audit_streams").selectAll().execute();
        let resealed = 0;
        for (const row of rows) {
          const sealed = seal(toStream(row));
          if (sealed === undefined) continue;
          await transaction.updateTable("audit_streams").set({ sealed }).where("id", "=", row.id).execute();
          resealed += 1;
        }
        return { resealed, unreadable: rows.length - resealed };
      }),
  };
}

function toStream(row: AuditStreamRow): AuditStreamRecord {
  return {
    id: row.id,
    target: row.target,
    sealed: row.sealed,
    sequence: row.sequence,
    createdAtMs: row.created_at_ms,
    createdBy: row.created_by ?? undefined,
    failures: row.failures,
    nextAtMs: row.next_at_ms,
    sentAtMs: row.sent_at_ms ?? undefined,
    problem: row.problem,
  };
}
