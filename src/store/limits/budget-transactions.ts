import { monthOf } from "../../core/clock.ts";
import type { BudgetDecision, BudgetDemand } from "../../limits/budgets.ts";
import { compactWholeJournal } from "../ledger/ledger-journal.ts";
import type { BudgetHoldRow, SpendingRow } from "../schema.ts";
import { batchesOf, forUpdate, insertRows, listOf, nowMs, type Statements } from "../statements.ts";
import { compare, releaseHolds, SpendingChanges, takeOff } from "./spending.ts";

/** Result of some demands: decisions, or the subjects whose rows are missing and cannot be locked. */
export type HoldOutcome =
  | { readonly decisions: readonly BudgetDecision[] }
  | { readonly missing: readonly string[]; readonly month: string };

/** Decides the demands in order, and holds the money of the admitted ones. */
export async function holdBudgets(statements: Statements, demands: readonly BudgetDemand[]): Promise<HoldOutcome> {
  if (statements.kind === "sqlite") await compactWholeJournal(statements);
  const subjects = [...new Set(demands.flatMap(({ holds }) => holds.map(({ subject }) => subject)))].toSorted(compare);
  const now = await nowMs(statements);
  const month = monthOf(now);
  // Holds before spending, the lock order of all transactions.
  const extendable = await findExtendable(statements, { demands, month });
  const taken = await lockTaken(statements, { subjects, month });
  if (taken.size < subjects.length) return { missing: subjects.filter((subject) => !taken.has(subject)), month };
  return { decisions: await decideInOrder(statements, demands, { taken, month, nowMs: now, extendable }) };
}

/** Locks this month's holds that demands extend, and returns their IDs. Usually there are none. */
async function findExtendable(
  statements: Statements,
  { demands, month }: { readonly demands: readonly BudgetDemand[]; readonly month: string },
): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  const ids = demands.flatMap(({ id, extends: extended }) => (extended === true ? [id] : []));
  for (const batch of batchesOf(statements, ids)) {
    const sql = `select id from budget_holds where id in ${listOf(batch.length)} and month = ? order by id, subject`;
    const rows = await statements.run<{ readonly id: string }>(`${sql} ${forUpdate(statements)}`, [...batch, month]);
    for (const { id } of rows) found.add(id);
  }
  return found;
}

/** Releases the holds of these completions. */
export async function cancelHolds(statements: Statements, ids: readonly string[]): Promise<void> {
  const changes = new SpendingChanges();
  await releaseHolds(statements, { ids, changes });
  await changes.apply(statements);
}

/**
 * Releases expired holds, at most `limit`, and answers for how many completions. A hold whose entry waits in the journal stays: its
 * money is spent.
 */
export async function reapHolds(statements: Statements, limit: number): Promise<number> {
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

/** Locks the spending of subjects for this transaction; returns what each has spent and held. */
async function lockTaken(
  statements: Statements,
  { subjects, month }: { readonly subjects: readonly string[]; readonly month: string },
): Promise<Map<string, number>> {
  const taken = new Map<string, number>();
  // The order of `compare`: PostgreSQL would sort by the database's collation.
  const order = statements.kind === "postgres" ? `order by subject collate "C"` : "";
  for (const batch of batchesOf(statements, subjects)) {
    const which = `month = ? and subject in ${listOf(batch.length)}`;
    const sql = `select * from spending where ${which} ${order} ${forUpdate(statements)}`;
    for (const row of await statements.run<SpendingRow>(sql, [month, ...batch]))
      taken.set(row.subject, row.spent_micro_usd + row.held_micro_usd);
  }
  return taken;
}

interface Deciding {
  readonly taken: Map<string, number>;
  readonly month: string;
  readonly nowMs: number;
  readonly extendable: ReadonlySet<string>;
}

async function decideInOrder(
  statements: Statements,
  demands: readonly BudgetDemand[],
  { taken, month, nowMs: now, extendable }: Deciding,
): Promise<BudgetDecision[]> {
  const changes = new SpendingChanges();
  const rows: BudgetHoldRow[] = [];
  const decisions = demands.map(
    ({ id, holds, amountMicroUsd, lastsMs, replica, extends: extended = false }): BudgetDecision => {
      const isLost = extended && !extendable.has(id);
      const full = holds.find(
        ({ subject, limitMicroUsd }) => isLost || taken.get(subject)! + amountMicroUsd > limitMicroUsd,
      );
      if (full !== undefined) return { admitted: false, ...full, takenMicroUsd: taken.get(full.subject)! };
      for (const { subject } of holds) {
        taken.set(subject, taken.get(subject)! + amountMicroUsd);
        changes.add({ subject, month, spent_micro_usd: 0, held_micro_usd: amountMicroUsd });
        rows.push({
          id,
          subject,
          month,
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
