import type { BudgetHoldRow, SpendingRow } from "../schema.ts";
import { batchesOf, forUpdate, insertRows, listOf, type Statements } from "../statements.ts";

/*
 * Every transaction takes its rows in the same order, so that none waits for one that waits for it: completions, holds,
 * spending, sums of usage, keys, and of each kind by their names.
 */

/** By how much what is spent and held of one subject and month changes. */
export type SpendingChange = SpendingRow;

/** Adds up what happens to each subject and month of one transaction. */
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

  /** Writes what does change. */
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
 * Removes what these completions hold, and takes it off what their subjects hold. In the ledger's transaction, so that the
 * same money is never both held and spent, nor neither. Answers in which month each completion held anything.
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

/** What is no longer held, as a change of what is. */
export function takeOff(holds: readonly BudgetHoldRow[], changes: SpendingChanges): void {
  for (const { subject, month, amount_micro_usd } of holds)
    changes.add({ subject, month, spent_micro_usd: 0, held_micro_usd: -amount_micro_usd });
}

/** The order in which rows of spending are taken. */
export function bySubject(
  left: Pick<SpendingRow, "subject" | "month">,
  right: Pick<SpendingRow, "subject" | "month">,
): number {
  return compare(left.subject, right.subject) || compare(left.month, right.month);
}

/** By code units, as every process does it, whatever its language. */
export function compare(left: string, right: string): number {
  if (left === right) return 0;
  return left < right ? -1 : 1;
}
