import type { BudgetHoldRow, SpendingRow } from "../schema.ts";
import { batchesOf, forUpdate, insertRows, listOf, type Statements } from "../statements.ts";

/*
 * Lock order of all transactions, against deadlocks: completions, holds, spending, usage sums, keys; within each table by
 * name.
 */

/** Change of the spent and held money of one subject and month. */
export type SpendingChange = SpendingRow;

/** Sums the changes of each subject and month in one transaction. */
export class SpendingChanges {
  readonly #changes = new Map<string, SpendingChange>();

  add({ subject, month, spent_micro_usd, held_micro_usd }: SpendingChange): void {
    const name = `${subject} ${month}`;
    const before = this.#changes.get(name);
    this.#changes.set(name, {
      subject,
      month,
      spent_micro_usd: (before?.spent_micro_usd ?? 0) + spent_micro_usd,
      held_micro_usd: (before?.held_micro_usd ?? 0) + held_micro_usd,
    });
  }

  /** Writes the changes that are not zero. */
  async apply(statements: Statements): Promise<void> {
    const changed = [...this.#changes.values()]
      .filter(({ spent_micro_usd, held_micro_usd }) => spent_micro_usd !== 0 || held_micro_usd !== 0)
      .toSorted(bySubject);
    await insertRows(statements, {
      into: "spending",
      rows: changed,
      ending: `on conflict (subject, month) do update set
        spent_micro_usd = spending.spent_micro_usd + excluded.spent_micro_usd,
        held_micro_usd = spending.held_micro_usd + excluded.held_micro_usd`,
    });
  }
}

/**
 * Removes the holds of these completions, and subtracts them from the subjects' held money. Runs in the ledger's
 * transaction, so that money is held or spent, never both or neither. Answers the month of each completion's hold.
 */
export async function releaseHolds(
  statements: Statements,
  { ids, changes }: { readonly ids: readonly string[]; readonly changes: SpendingChanges },
): Promise<ReadonlyMap<string, string>> {
  const months = new Map<string, string>();
  for (const batch of batchesOf(statements, ids)) {
    const which = `where id in ${listOf(batch.length)}`;
    const held = `select * from budget_holds ${which} order by id, subject ${forUpdate(statements)}`;
    const holds = await statements.run<BudgetHoldRow>(held, batch);
    if (holds.length === 0) continue;
    await statements.run(`delete from budget_holds ${which}`, batch);
    takeOff(holds, changes);
    for (const { id, month } of holds) months.set(id, month);
  }
  return months;
}

/** Subtracts these holds from the held money. */
export function takeOff(holds: readonly BudgetHoldRow[], changes: SpendingChanges): void {
  for (const { subject, month, amount_micro_usd } of holds)
    changes.add({ subject, month, spent_micro_usd: 0, held_micro_usd: -amount_micro_usd });
}

/** Order in which rows of spending are locked. */
export function bySubject(
  left: Pick<SpendingRow, "subject" | "month">,
  right: Pick<SpendingRow, "subject" | "month">,
): number {
  return compare(left.subject, right.subject) || compare(left.month, right.month);
}

/** Compares by code units: the same order in every process, whatever its locale. */
export function compare(left: string, right: string): number {
  if (left === right) return 0;
  return left < right ? -1 : 1;
}
