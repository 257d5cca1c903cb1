import type { BudgetDecision, BudgetDemand, BudgetStore } from "../../limits/budgets.ts";
import { Batcher } from "../batcher.ts";
import type { Database } from "../database.ts";
import type { LedgerCompaction } from "../ledger/ledger-store.ts";
import { chunksOf } from "../statements.ts";
import { isLockTimeout, retryWhileBusy, StoreError } from "../store-error.ts";
import { keptUntil, type SpendingKey } from "./spending.ts";

/** Limits for the decision on a completion's budget, and for another one when it is refused. */
const LIMIT_MS = 3_000;
const AGAIN_MS = 1_000;
/** Expired holds released per transaction. */
const REAP_ROWS = 100;
/** Rows of budgets removed per transaction. */
const PRUNE_ROWS = 500;
/** Missing rows are inserted and rarely removed, so few tries are needed. */
const MAX_TRIES = 3;
/** Duration of the longest hold with the default `timeouts.total_ms`. */
const USUAL_HOLD_MS = 16 * 60_000;
/** Difference of the database's clock and this process's from which on the former was put forward; below it a measurement was late. */
const STEP_MS = 10_000;
/** Limit of cancellations kept for a retry; further holds are released when they expire. */
const MAX_UNCANCELLED = 10_000;

/** The BudgetStore in the database. Rejects with a StoreError. */
export function createBudgetStore(database: Database, compaction: LedgerCompaction): BudgetStore {
  /** Holds to be cancelled that may still exist. */
  const uncancelled = new Set<string>();
  let cancelling: Promise<void> | undefined;
  const cancelWaiting = async (): Promise<void> => {
    const ids = [...uncancelled];
    await database.perform("cancelHolds", ids);
    for (const id of ids) uncancelled.delete(id);
  };
  /** Cancels all that wait, in one transaction at a time: when the database is slow, hundreds of holds are cancelled at once. */
  const cancelAll = async (): Promise<void> => {
    await cancelling?.catch(() => undefined);
    if (uncancelled.size === 0) return;
    cancelling ??= cancelWaiting().finally(() => (cancelling = undefined));
    await cancelling;
  };
  const cancel = async (id: string): Promise<void> => {
    if (uncancelled.size < MAX_UNCANCELLED) uncancelled.add(id);
    await cancelAll();
  };
  const toError = (message: string, cause?: unknown): Error =>
    cause instanceof StoreError ? cause : new StoreError(message, { cause });
  // A cancellation may have come before the hold.
  const onLate = ({ id, extends: extended }: BudgetDemand, decision: BudgetDecision | undefined): void => {
    if (decision?.admitted === true && extended !== true) cancel(id).catch(() => undefined);
  };
  const clock = new DatabaseClock();
  const batcher = new Batcher<BudgetDemand, BudgetDecision>({
    async decide(demands) {
      // Holds that cannot be cancelled now count until they are.
      await cancelAll().catch(() => undefined);
      return decideAll(database, demands, clock);
    },
    limitMs: LIMIT_MS,
    toError,
    onLate,
  });
  /**
   * Decides refused demands again after a compaction, if there is something to compact: a completion that has just ended holds its worst
   * case until then. Apart from the others, which must not wait for a compaction, nor fail with it.
   */
  const again = new Batcher<BudgetDemand, BudgetDecision | undefined>({
    decide: async (demands) =>
      (await compaction.flush()) ? decideAll(database, demands, clock) : demands.map(() => undefined),
    limitMs: AGAIN_MS,
    toError,
    onLate,
  });
  return {
    async hold(demand) {
      if (demand.holds.length === 0) return { admitted: true };
      clock.noteHold(demand.lastsMs);
      const decision = await batcher.ask(demand);
      // SQLite compacts before it decides.
      if (decision.admitted || database.kind === "sqlite") return decision;
      return (await again.ask(demand).catch(() => undefined)) ?? decision;
    },
    cancel,
    async reap() {
      await cancelAll();
      await compaction.flushed();
      clock.note(await database.nowMs(database.query));
      if (clock.hasStepped) return 0;
      const released = await database.perform("reapHolds", REAP_ROWS);
      return released + (await database.perform("pruneSpending", PRUNE_ROWS));
    },
  };
}

/** The database's clock, as this process sees it. When it is put forward, holds of calls in flight look expired. */
class DatabaseClock {
  #longestMs = USUAL_HOLD_MS;
  /** The database's time, less this process's. */
  #aheadMs: number | undefined;
  #steppedUntilMs = -Infinity;

  noteHold(lastsMs: number): void {
    this.#longestMs = Math.max(this.#longestMs, lastsMs);
  }

  note(nowMs: number): void {
    const monotonicMs = performance.now();
    const aheadMs = nowMs - monotonicMs;
    if (aheadMs - (this.#aheadMs ?? aheadMs) > STEP_MS) this.#steppedUntilMs = monotonicMs + this.#longestMs;
    this.#aheadMs = aheadMs;
  }

  /** Whether it was put forward less than the longest hold ago. */
  get hasStepped(): boolean {
    return performance.now() < this.#steppedUntilMs;
  }
}

/**
 * Decides all demands. A row that another transaction keeps locked fails those demands that need it, and not the others of the batch.
 */
async function decideAll(
  database: Database,
  demands: readonly BudgetDemand[],
  clock: DatabaseClock,
): Promise<readonly (BudgetDecision | StoreError)[]> {
  const decided = new Map<BudgetDemand, BudgetDecision>();
  let locked: "wait" | "skip locked" = "wait";
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const left = demands.filter((demand) => !decided.has(demand));
    try {
      const { decisions, missing, nowMs } = await database.perform("holdBudgets", { demands: left, locked });
      clock.note(nowMs);
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
