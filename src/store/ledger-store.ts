import { sql, type Kysely } from "kysely";
import type { LedgerEntry } from "../core/ledger.ts";
import type { LedgerStore } from "../ledger/ledger-store.ts";
import { monthOf } from "../limits/budgets.ts";
import { releaseHolds } from "./budget-holds.ts";
import { retryWhileBusy } from "./busy.ts";
import { chunksOf, type Database } from "./database.ts";
import { toCompletionRow, toLedgerEntry } from "./ledger-rows.ts";
import type { Schema } from "./schema.ts";
import { compare, SpendingChanges } from "./spending.ts";
import { createUsage } from "./usage.ts";

/** How many entries are removed at a time: others wait meanwhile. */
const PRUNE_ROWS = 1_000;

/** The ledger in the database. `reports` is where reading much does not keep others waiting; may be the same. */
export function createLedgerStore(database: Database, reports: Database): LedgerStore {
  const { query } = database;
  return {
    async insert(entries) {
      // Each once, in an order that all processes share.
      const distinct = new Map(entries.map((entry) => [entry.completionId, entry]));
      const sorted = [...distinct.values()].toSorted((a, b) => compare(a.completionId, b.completionId));
      if (sorted.length === 0) return;
      await database.transaction(async (transaction) => {
        const written = await insertNew(transaction, sorted);
        if (written.length === 0) return;
        const changes = new SpendingChanges();
        await releaseHolds(database, transaction, { ids: written.map(({ completionId }) => completionId), changes });
        for (const { keyId, accountId, startedAtMs, costMicroUsd } of written) {
          const month = monthOf(startedAtMs);
          for (const subject of [`key:${keyId}`, `account:${accountId}`])
            changes.add({ subject, month, spent_micro_usd: costMicroUsd, held_micro_usd: 0 });
        }
        await changes.apply(transaction);
        await noteUse(transaction, written);
      });
    },

    usage: createUsage(reports),

    async list({ limit, beforeMs, accountId }) {
      let newest = reports.query
        .selectFrom("completions")
        .selectAll()
        .where("started_at_ms", "<", beforeMs)
        .orderBy("started_at_ms", "desc")
        .orderBy("id", "desc")
        .limit(limit);
      if (accountId !== undefined) newest = newest.where("account_id", "=", accountId);
      return (await retryWhileBusy(() => newest.execute())).map(toLedgerEntry);
    },

    async spending(subject, month) {
      const found = query.selectFrom("spending").selectAll().where("subject", "=", subject).where("month", "=", month);
      const row = await retryWhileBusy(() => found.executeTakeFirst());
      return { spentMicroUsd: row?.spent_micro_usd ?? 0, heldMicroUsd: row?.held_micro_usd ?? 0 };
    },

    async prune(beforeMs) {
      const oldest = query
        .selectFrom("completions")
        .select("id")
        .where("started_at_ms", "<", beforeMs)
        .orderBy("started_at_ms")
        .limit(PRUNE_ROWS);
      const removed = query.deleteFrom("completions").where("id", "in", oldest);
      return Number((await retryWhileBusy(() => removed.executeTakeFirst())).numDeletedRows);
    },
  };
}

/** Writes the entries that are not there yet, and answers which they were. */
async function insertNew(transaction: Kysely<Schema>, entries: readonly LedgerEntry[]): Promise<LedgerEntry[]> {
  const written: LedgerEntry[] = [];
  for (const chunk of chunksOf(entries)) {
    const rows = await transaction
      .insertInto("completions")
      .values(chunk.map(toCompletionRow))
      .onConflict((conflict) => conflict.column("id").doNothing())
      .returning("id")
      .execute();
    const ids = new Set(rows.map(({ id }) => id));
    written.push(...chunk.filter(({ completionId }) => ids.has(completionId)));
  }
  return written;
}

/** Notes when keys were last used. No two transactions do this for one key at once: its spending was changed before. */
async function noteUse(transaction: Kysely<Schema>, entries: readonly LedgerEntry[]): Promise<void> {
  const latest = new Map<string, number>();
  for (const { keyId, endedAtMs } of entries)
    latest.set(keyId, Math.max(latest.get(keyId) ?? 0, Math.round(endedAtMs)));
  for (const chunk of chunksOf([...latest])) {
    const cases = sql.join(
      chunk.map(([id, atMs]) => sql`when ${id} then cast(${atMs} as bigint)`),
      sql` `,
    );
    const usedAtMs = sql<number>`case id ${cases} end`;
    await transaction
      .updateTable("api_keys")
      .set({ last_used_at_ms: usedAtMs })
      .where(
        "id",
        "in",
        chunk.map(([id]) => id),
      )
      .where((is) => is.or([is("last_used_at_ms", "is", null), is("last_used_at_ms", "<", usedAtMs)]))
      .execute();
  }
}
