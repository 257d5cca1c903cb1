import type { BudgetDecision, BudgetDemand, BudgetStore } from "../limits/budgets.ts";
import { Batcher } from "./batcher.ts";
import { retryWhileBusy } from "./busy.ts";
import { chunksOf } from "./chunks.ts";
import type { Database } from "./database.ts";
import { StoreError } from "./store-error.ts";

/** How long a completion waits for its money. */
const LIMIT_MS = 3_000;
/** So many holds that nobody settled are freed at a time. */
const REAP_ROWS = 100;
/** Rows that are missing are made, and nobody removes them. */
const MAX_TRIES = 3;

/** Budgets in the database. Rejects with a StoreError. */
export function createBudgetStore(database: Database): BudgetStore {
  const batcher = new Batcher<BudgetDemand, BudgetDecision>({
    decide: (demands) => decideAll(database, demands),
    limitMs: LIMIT_MS,
    toError: (message, cause) => (cause instanceof StoreError ? cause : new StoreError(message, { cause })),
  });
  return {
    hold: (demand) => (demand.holds.length === 0 ? Promise.resolve({ admitted: true }) : batcher.ask(demand)),
    cancel: (id) => database.perform("cancelHold", id),
    reap: () => database.perform("reapHolds", REAP_ROWS),
  };
}

async function decideAll(database: Database, demands: readonly BudgetDemand[]): Promise<readonly BudgetDecision[]> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const outcome = await database.perform("holdBudgets", demands);
    if ("decisions" in outcome) return outcome.decisions;
    await makeRows(database, outcome);
  }
  throw new StoreError("The rows of budgets keep disappearing.");
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
