import { periodAt } from "../../core/clock.ts";
import type { BudgetDecision, BudgetDemand, BudgetHold } from "../../limits/budgets.ts";
import { compactWholeJournal } from "../ledger/ledger-journal.ts";
import type { BudgetHoldRow, SpendingRow } from "../schema.ts";
import { batchesOf, forUpdate, insertRows, limitLockWaits, listOf, nowMs, type Statements } from "../statements.ts";
import { bySubject, releaseHolds, SpendingChanges, type SpendingKey, spendingName, takeOff } from "./spending.ts";

/** Time that a decision waits for each lock, and time that a release of holds does: others wait for its locks meanwhile. */
const LOCK_MS = 1_000;
const RELEASE_LOCK_MS = 500;

export interface HoldBudgets {
  readonly demands: readonly BudgetDemand[];
  /** What it does about rows that other transactions have locked: waits for LOCK_MS, or decides the demands for other rows. */
  readonly locked: "wait" | "skip locked";
}

/** Result of some demands: decisions, undefined where a row is missing or skipped; and these rows. */
export interface HoldOutcome {
  readonly decisions: readonly (BudgetDecision | undefined)[];
  readonly missing: readonly SpendingKey[];
  readonly nowMs: number;
}

/** Decides the demands in order, and holds the money of the admitted ones. Unless it skips rows it decides none while a row is missing. */
export async function holdBudgets(statements: Statements, { demands, locked }: HoldBudgets): Promise<HoldOutcome> {
  if (statements.kind === "sqlite") await compactWholeJournal(statements);
  const now = await nowMs(statements, { lockMs: LOCK_MS });
  // Holds before spending, the lock order of all transactions.
  const extendable = await findExtendable(statements, demands);
  const keyOf = (id: string, { subject, period = "month" }: BudgetHold): SpendingKey => {
    return { subject, month: extendable.get(holdName(id, subject)) ?? periodAt(now, period) };
  };
  const keys = new Map<string, SpendingKey>();
  for (const { id, holds } of demands)
    for (const hold of holds) {
      const key = keyOf(id, hold);
      keys.set(spendingName(key), key);
    }
  const sorted = [...keys.values()].toSorted(bySubject);
  const taken = await lockTaken(statements, sorted, locked);
  const missing = sorted.filter((key) => !taken.has(spendingName(key)));
  const isDecided = ({ id, holds }: BudgetDemand): boolean =>
    holds.every((hold) => taken.has(spendingName(keyOf(id, hold))));
  const decided = missing.length === 0 ? demands : locked === "wait" ? [] : demands.filter(isDecided);
  const made = await decideInOrder(statements, decided, { taken, nowMs: now, extendable, keyOf });
  const decisions = new Map(decided.map((demand, index) => [demand, made[index]]));
  return { decisions: demands.map((demand) => decisions.get(demand)), missing, nowMs: now };
}

/** Name of a completion's hold of a subject. */
function holdName(id: string, subject: string): string {
  return `${id} ${subject}`;
}

/** Locks the holds that demands extend, and returns their months by their names. Usually there are none. */
async function findExtendable(
  statements: Statements,
  demands: readonly BudgetDemand[],
): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  const ids = demands.flatMap(({ id, extends: extended }) => (extended === true ? [id] : []));
  for (const batch of batchesOf(statements, ids)) {
    const sql = `select id, subject, month from budget_holds where id in ${listOf(batch.length)} order by id, subject`;
    const rows = await statements.run<Pick<BudgetHoldRow, "id" | "subject" | "month">>(
      `${sql} ${forUpdate(statements)}`,
      batch,
    );
    for (const { id, subject, month } of rows) found.set(holdName(id, subject), month);
  }
  return found;
}

/** Releases the holds of these completions. */
export async function cancelHolds(statements: Statements, ids: readonly string[]): Promise<void> {
  await limitLockWaits(statements, RELEASE_LOCK_MS);
  const changes = new SpendingChanges();
  await releaseHolds(statements, { ids, changes });
  await changes.apply(statements);
}

/**
 * Releases expired holds, at most `limit`, and answers for how many completions. A hold whose entry waits in the journal stays: its
 * money is spent.
 */
export async function reapHolds(statements: Statements, limit: number): Promise<number> {
  await limitLockWaits(statements, RELEASE_LOCK_MS);
  const position = statements.kind === "sqlite" ? "instr" : "strpos";
  const isWritten = `select 1 from ledger_segments where ${position}(entries, budget_holds.id) > 0`;
  const which = `expires_at_ms <= ? and not exists (${isWritten})`;
  const ended = `select * from budget_holds where ${which} order by expires_at_ms, id limit ?`;
  const sql = `${ended} ${forUpdate(statements, "skip locked")}`;
  const holds = await statements.run<BudgetHoldRow>(sql, [await nowMs(statements), limit]);
  for (const { id, subject } of holds)
    await statements.run("delete from budget_holds where id = ? and subject = ?", [id, subject]);
  const changes = new SpendingChanges();
  takeOff(holds, changes);
  await changes.apply(statements);
  return new Set(holds.map(({ id }) => id)).size;
}

/** Money spent and held of a budget, and the budget's own limit where it has one in place of the hold's. */
interface Taken {
  readonly microUsd: number;
  readonly limitMicroUsd: number | null;
}

/** Locks these rows of spending, which are in order, for this transaction. */
async function lockTaken(
  statements: Statements,
  keys: readonly SpendingKey[],
  locked: HoldBudgets["locked"],
): Promise<Map<string, Taken>> {
  const taken = new Map<string, Taken>();
  // The order of `bySubject`: PostgreSQL would sort by the database's collation.
  const order = statements.kind === "postgres" ? `order by subject collate "C", month collate "C"` : "";
  // A subject has one period, but for a moment after a change of its budget; further rows are locked for nothing.
  const months = [...new Set(keys.map(({ month }) => month))];
  const subjects = [...new Set(keys.map(({ subject }) => subject))];
  for (const batch of batchesOf(statements, subjects)) {
    const which = `month in ${listOf(months.length)} and subject in ${listOf(batch.length)}`;
    const sql = `select * from spending where ${which} ${order} ${forUpdate(statements, locked)}`;
    for (const row of await statements.run<SpendingRow>(sql, [...months, ...batch]))
      taken.set(spendingName(row), {
        microUsd: row.spent_micro_usd + row.held_micro_usd,
        limitMicroUsd: row.limit_micro_usd,
      });
  }
  return taken;
}

interface Deciding {
  /** By the names of rows. */
  readonly taken: Map<string, Taken>;
  readonly nowMs: number;
  /** Months of holds that are extended, by their names. */
  readonly extendable: ReadonlyMap<string, string>;
  readonly keyOf: (id: string, hold: BudgetHold) => SpendingKey;
}

async function decideInOrder(
  statements: Statements,
  demands: readonly BudgetDemand[],
  { taken, nowMs: now, extendable, keyOf }: Deciding,
): Promise<BudgetDecision[]> {
  const changes = new SpendingChanges();
  const rows: BudgetHoldRow[] = [];
  const decisions = demands.map(
    ({ id, holds, amountMicroUsd, lastsMs, replica, extends: extended = false }): BudgetDecision => {
      const keyed = holds.map((hold) => {
        const key = keyOf(id, hold);
        const name = spendingName(key);
        return { hold, key, name, limitMicroUsd: taken.get(name)!.limitMicroUsd ?? hold.limitMicroUsd };
      });
      const full = keyed.find(({ key, name, limitMicroUsd }) => {
        const isLost = extended && !extendable.has(holdName(id, key.subject));
        return isLost || taken.get(name)!.microUsd + amountMicroUsd > limitMicroUsd;
      });
      if (full !== undefined) {
        const { hold, name, limitMicroUsd } = full;
        const { subject, period } = hold;
        const takenMicroUsd = taken.get(name)!.microUsd;
        return { admitted: false, subject, limitMicroUsd, ...(period && { period }), takenMicroUsd };
      }
      for (const { hold, key, name } of keyed) {
        const before = taken.get(name)!;
        taken.set(name, { ...before, microUsd: before.microUsd + amountMicroUsd });
        const change = { ...key, spent_micro_usd: 0, held_micro_usd: amountMicroUsd, at_ms: now };
        changes.add({ ...change, name: hold.name });
        rows.push({
          id,
          ...key,
          amount_micro_usd: amountMicroUsd,
          expires_at_ms: Math.ceil(now + lastsMs),
          replica: replica ?? null,
        });
      }
      return { admitted: true };
    },
  );
  await changes.apply(statements);
  await insertRows(statements, {
    into: "budget_holds",
    rows,
    ...(extendable.size > 0 && {
      ending: `on conflict (id, subject) do update set
        amount_micro_usd = budget_holds.amount_micro_usd + excluded.amount_micro_usd`,
    }),
  });
  return decisions;
}
