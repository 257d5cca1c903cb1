import type { BudgetHoldRow } from "../schema.ts";
import type { SpendingChanges } from "./spending.ts";
import { batchesOf, forUpdate, listOf, type Statements } from "../statements.ts";

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
