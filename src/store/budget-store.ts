import type { Kysely } from "kysely";
import { type BudgetDecision, type BudgetDemand, type BudgetStore, monthOf } from "../limits/budgets.ts";
import { Batcher } from "./batcher.ts";
import { releaseHolds, takeOff } from "./budget-holds.ts";
import { retryWhileBusy } from "./busy.ts";
import { chunksOf, type Database, inCodeUnits, lockRows, skipLocked } from "./database.ts";
import type { BudgetHoldRow, Schema } from "./schema.ts";
import { compare, SpendingChanges } from "./spending.ts";
import { StoreError } from "./store-error.ts";

/** How long a completion waits for its money. */
const LIMIT_MS = 3_000;
/** So many holds that nobody settled are freed at a time. */
const REAP_ROWS = 100;
/** Rows that are missing are made, and nobody removes them. */
const MAX_TRIES = 3;
/** So many are remembered that could not be cancelled; what more there is ends with its time. */
const MAX_UNCANCELLED = 10_000;

/** Budgets in the database. Rejects with a StoreError. */
export function createBudgetStore(database: Database): BudgetStore {
  /** Holds that may be there and must not be. */
  const uncancelled = new Set<string>();
  const cancelAll = async (): Promise<void> => {
    if (uncancelled.size === 0) return;
    const ids = [...uncancelled];
    await database.transaction(async (transaction) => {
      const changes = new SpendingChanges();
      await releaseHolds(database, transaction, { ids, changes });
      await changes.apply(transaction);
    });
    for (const id of ids) uncancelled.delete(id);
  };
  const cancel = async (id: string): Promise<void> => {
    if (uncancelled.size < MAX_UNCANCELLED) uncancelled.add(id);
    await cancelAll();
  };
  const batcher = new Batcher<BudgetDemand, BudgetDecision>({
    async decide(demands) {
      await cancelAll();
      return decideAll(database, demands);
    },
    limitMs: LIMIT_MS,
    toError: (message, cause) => (cause instanceof StoreError ? cause : new StoreError(message, { cause })),
    // A cancellation may have come before it.
    onLate({ id }, { admitted }) {
      if (admitted) cancel(id).catch(() => undefined);
    },
  });
  return {
    hold: (demand) => (demand.holds.length === 0 ? Promise.resolve({ admitted: true }) : batcher.ask(demand)),

    cancel,

    async reap() {
      await cancelAll();
      const freed = await database.transaction(async (transaction) => {
        const nowMs = await database.nowMs(transaction);
        const ended = transaction
          .selectFrom("budget_holds")
          .selectAll()
          .where("expires_at_ms", "<=", nowMs)
          .orderBy("expires_at_ms")
          .orderBy("id")
          .limit(REAP_ROWS);
        const holds = await skipLocked(database, ended).execute();
        for (const { id, subject } of holds)
          await transaction.deleteFrom("budget_holds").where("id", "=", id).where("subject", "=", subject).execute();
        const changes = new SpendingChanges();
        takeOff(holds, changes);
        await changes.apply(transaction);
        return holds;
      });
      return new Set(freed.map(({ id }) => id)).size;
    },
  };
}

async function decideAll(database: Database, demands: readonly BudgetDemand[]): Promise<BudgetDecision[]> {
  const subjects = [...new Set(demands.flatMap(({ holds }) => holds.map(({ subject }) => subject)))].toSorted(compare);
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const outcome = await database.transaction(async (transaction) => {
      const nowMs = await database.nowMs(transaction);
      const month = monthOf(nowMs);
      const taken = await lockTaken(database, transaction, { subjects, month });
      if (taken.size < subjects.length) return { missing: subjects.filter((subject) => !taken.has(subject)), month };
      return { decisions: await decideInOrder(transaction, demands, { taken, month, nowMs }) };
    });
    if ("decisions" in outcome) return outcome.decisions;
    await makeRows(database, outcome);
  }
  throw new StoreError("The rows of budgets keep disappearing.");
}

/** What of each subject is spent and held, kept for this transaction. */
async function lockTaken(
  database: Database,
  transaction: Kysely<Schema>,
  { subjects, month }: { readonly subjects: readonly string[]; readonly month: string },
): Promise<Map<string, number>> {
  const taken = new Map<string, number>();
  for (const chunk of chunksOf(subjects)) {
    const rows = transaction
      .selectFrom("spending")
      .selectAll()
      .where("month", "=", month)
      .where("subject", "in", chunk)
      .orderBy(inCodeUnits(database, "subject"));
    for (const row of await lockRows(database, rows).execute())
      taken.set(row.subject, row.spent_micro_usd + row.held_micro_usd);
  }
  return taken;
}

/** Outside any transaction, so that no two wait for each other's rows. */
async function makeRows(
  { query }: Database,
  { missing, month }: { readonly missing: readonly string[]; readonly month: string },
): Promise<void> {
  for (const chunk of chunksOf(missing)) {
    const rows = chunk.map((subject) => ({ subject, month, spent_micro_usd: 0, held_micro_usd: 0 }));
    const made = query
      .insertInto("spending")
      .values(rows)
      .onConflict((conflict) => conflict.columns(["subject", "month"]).doNothing());
    await retryWhileBusy(() => made.execute());
  }
}

async function decideInOrder(
  transaction: Kysely<Schema>,
  demands: readonly BudgetDemand[],
  { taken, month, nowMs }: { readonly taken: Map<string, number>; readonly month: string; readonly nowMs: number },
): Promise<BudgetDecision[]> {
  const changes = new SpendingChanges();
  const rows: BudgetHoldRow[] = [];
  const decisions = demands.map(({ id, holds, amountMicroUsd, lastsMs }): BudgetDecision => {
    const full = holds.find(({ subject, limitMicroUsd }) => taken.get(subject)! + amountMicroUsd > limitMicroUsd);
    if (full !== undefined) return { admitted: false, ...full, takenMicroUsd: taken.get(full.subject)! };
    for (const { subject } of holds) {
      taken.set(subject, taken.get(subject)! + amountMicroUsd);
      changes.add({ subject, month, spent_micro_usd: 0, held_micro_usd: amountMicroUsd });
      rows.push({ id, subject, month, amount_micro_usd: amountMicroUsd, expires_at_ms: Math.ceil(nowMs + lastsMs) });
    }
    return { admitted: true };
  });
  await changes.apply(transaction);
  for (const chunk of chunksOf(rows)) await transaction.insertInto("budget_holds").values(chunk).execute();
  return decisions;
}
