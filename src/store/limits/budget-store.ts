import type { BudgetDecision, BudgetDemand, BudgetStore } from "../../limits/budgets.ts";
import { Batcher } from "../batcher.ts";
import type { Database } from "../database.ts";
import type { LedgerCompaction } from "../ledger/ledger-store.ts";
import { chunksOf } from "../statements.ts";
import { isLockTimeout, retryWhileBusy, StoreError } from "../store-error.ts";
import { keptUntil, type SpendingKey } from "./spending.ts";

/** Limit for the decision on a completion's budget. */
const LIMIT_MS = 3_000;
/** Expired holds released per transaction. */
const REAP_ROWS = 100;
/** Rows of budgets removed per transaction. */
const PRUNE_ROWS = 500;
/** Missing rows are inserted and rarely removed, so few tries are needed. */
const MAX_TRIES = 3;
/** Limit of cancellations kept for a retry; further holds are released when they expire. */
const MAX_UNCANCELLED = 10_000;

/** The BudgetStore in the database. Rejects with a StoreError. */
export function createBudgetStore(database: Database, compaction: LedgerCompaction): BudgetStore {
  /** Holds to be cancelled that may still exist. */
  const uncancelled = new Set<string>();
  const cancelAll = async (): Promise<void> => {
    if (uncancelled.size === 0) return;
    const ids = [...uncancelled];
    await database.perform("cancelHolds", ids);
    for (const id of ids) uncancelled.delete(id);
  };
  const cancel = async (id: string): Promise<void> => {
    if (uncancelled.size < MAX_UNCANCELLED) uncancelled.add(id);
    await cancelAll();
  };
  const batcher = new Batcher<BudgetDemand, BudgetDecision>({
    async decide(demands) {
      await cancelAll();
      const decisions = await decideAll(database, demands);
      const isRefused = (index: number): boolean => {
        const decision = decisions[index]!;
        return !(decision instanceof StoreError) && !decision.admitted;
      };
      const refused = demands.filter((_, index) => isRefused(index));
      if (database.kind === "sqlite" || refused.length === 0) return decisions;
      // A completion that has just ended holds its worst case until it is compacted. SQLite compacts before it decides.
      if (!(await compaction.flush())) return decisions;
      const again = (await decideAll(database, refused)).values();
      return decisions.map((decision, index) => (isRefused(index) ? again.next().value! : decision));
    },
    limitMs: LIMIT_MS,
    toError: (message, cause) => (cause instanceof StoreError ? cause : new StoreError(message, { cause })),
    // A cancellation may have come before the hold.
    onLate({ id, extends: extended }, { admitted }) {
      if (admitted && extended !== true) cancel(id).catch(() => undefined);
    },
  });
  return {
    hold: (demand) => (demand.holds.length === 0 ? Promise.resolve({ admitted: true }) : batcher.ask(demand)),
    cancel,
    async reap() {
      await cancelAll();
      await compaction.flushed();
      const released = await database.perform("reapHolds", REAP_ROWS);
      return released + (await database.perform("pruneSpending", PRUNE_ROWS));
    },
  };
}

/**
 * Decides all demands. A row that another transaction keeps locked fails those demands that need it, and not the others of the batch.
 */
async function decideAll(
  database: Database,
  demands: readonly BudgetDemand[],
): Promise<readonly (BudgetDecision | StoreError)[]> {
  const decided = new Map<BudgetDemand, BudgetDecision>();
  let locked: "wait" | "skip locked" = "wait";
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const left = demands.filter((demand) => !decided.has(demand));
    try {
      const { decisions, missing, nowMs } = await database.perform("holdBudgets", { demands: left, locked });
      for (const [index, decision] of decisions.entries())
        if (decision !== undefined) decided.set(left[index]!, decision);
      if (missing.length === 0) break;
      await makeRows(database, { missing, nowMs });
    } catch (error) {
      if (locked !== "wait" || !isLockTimeout(error)) throw error;
      locked = "skip locked";
    }
  }
  return demands.map(
    (demand) => decided.get(demand) ?? new StoreError("The rows of its budgets are locked for too long."),
  );
}

/** Inserts missing rows, outside any transaction, so that no two transactions wait for each other's rows. */
async function makeRows(
  { query }: Database,
  { missing, nowMs }: { readonly missing: readonly SpendingKey[]; readonly nowMs: number },
): Promise<void> {
  for (const chunk of chunksOf(missing)) {
    const none = { spent_micro_usd: 0, held_micro_usd: 0 };
    const rows = chunk.map((key) => ({ ...key, ...none, kept_until_ms: keptUntil(key, nowMs) }));
    const made = query
      .insertInto("spending")
      .values(rows)
      .onConflict((conflict) => conflict.columns(["subject", "month"]).doNothing());
    await retryWhileBusy(() => made.execute());
  }
}
