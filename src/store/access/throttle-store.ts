import type { ThrottleState, ThrottleStore } from "../../access/account-store.ts";
import { type Database, lockRows } from "../database.ts";
import type { ThrottleRow } from "../schema.ts";
import { retryWhileBusy, StoreError } from "../store-error.ts";

/** A try fails only when another process has just inserted the row, which happens once per row. */
const MAX_TRIES = 5;

/** The ThrottleStore in the database. */
export function createThrottleStore(database: Database): ThrottleStore {
  const { query } = database;

  /** Undefined when another process has inserted the row meanwhile. */
  const tryUpdate = (
    subject: string,
    change: (state: ThrottleState | undefined) => ThrottleState,
  ): Promise<ThrottleState | undefined> =>
    database.transaction(async (transaction) => {
      const found = transaction.selectFrom("throttles").selectAll().where("subject", "=", subject);
      const row = await lockRows(database, found).executeTakeFirst();
      const state = change(row && toState(row));
      if (row !== undefined) {
        await transaction.updateTable("throttles").set(toRow(subject, state)).where("subject", "=", subject).execute();
        return state;
      }
      const made = await transaction
        .insertInto("throttles")
        .values(toRow(subject, state))
        .onConflict((conflict) => conflict.column("subject").doNothing())
        .executeTakeFirst();
      return made.numInsertedOrUpdatedRows === 1n ? state : undefined;
    });

  return {
    async find(subject) {
      const found = query.selectFrom("throttles").selectAll().where("subject", "=", subject);
      const row = await retryWhileBusy(() => found.executeTakeFirst());
      return row && toState(row);
    },

    async update(subject, change) {
      for (let tries = 0; tries < MAX_TRIES; tries++) {
        const state = await tryUpdate(subject, change);
        if (state !== undefined) return state;
      }
      throw new StoreError("The count of password attempts keeps changing.");
    },

    async remove(subject) {
      const removal = query
        .deleteFrom("throttles")
        .where((is) => is.or([is("subject", "=", subject), is("subject", "like", `${subject}/%`)]));
      await retryWhileBusy(() => removal.execute());
    },

    async prune({ beforeMs, most }) {
      const old = query.deleteFrom("throttles").where("changed_at_ms", "<", beforeMs);
      const { numDeletedRows } = await retryWhileBusy(() => old.executeTakeFirst());
      const counting = query.selectFrom("throttles").select((is) => is.fn.countAll<number | bigint>().as("count"));
      const { count } = await retryWhileBusy(() => counting.executeTakeFirstOrThrow());
      const excess = Number(count) - most;
      if (excess <= 0) return Number(numDeletedRows);
      const least = query
        .selectFrom("throttles")
        .select("subject")
        .orderBy("count")
        .orderBy("changed_at_ms")
        .limit(excess);
      const removed = query.deleteFrom("throttles").where("subject", "in", least);
      return Number(numDeletedRows + (await retryWhileBusy(() => removed.executeTakeFirst())).numDeletedRows);
    },
  };
}

function toRow(subject: string, { count, blockedUntilMs, changedAtMs }: ThrottleState): ThrottleRow {
  return { subject, count, blocked_until_ms: blockedUntilMs, changed_at_ms: changedAtMs };
}

function toState(row: ThrottleRow): ThrottleState {
  return { count: row.count, blockedUntilMs: row.blocked_until_ms, changedAtMs: row.changed_at_ms };
}
