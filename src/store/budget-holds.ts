import type { Kysely } from "kysely";
import { chunksOf, lockRows, type Database } from "./database.ts";
import type { BudgetHoldRow, Schema } from "./schema.ts";
import type { SpendingChanges } from "./spending.ts";

/**
 * Removes what these completions hold, and takes it off what their subjects hold. In the ledger's transaction, so that the
 * same money is never both held and spent, nor neither.
 */
export async function releaseHolds(
  database: Database,
  transaction: Kysely<Schema>,
  { ids, changes }: { readonly ids: readonly string[]; readonly changes: SpendingChanges },
): Promise<void> {
  for (const chunk of chunksOf(ids)) {
    const held = transaction
      .selectFrom("budget_holds")
      .selectAll()
      .where("id", "in", chunk)
      .orderBy("id")
      .orderBy("subject");
    const holds = await lockRows(database, held).execute();
    if (holds.length === 0) continue;
    await transaction.deleteFrom("budget_holds").where("id", "in", chunk).execute();
    takeOff(holds, changes);
  }
}

/** What is no longer held, as a change of what is. */
export function takeOff(holds: readonly BudgetHoldRow[], changes: SpendingChanges): void {
  for (const { subject, month, amount_micro_usd } of holds)
    changes.add({ subject, month, spent_micro_usd: 0, held_micro_usd: -amount_micro_usd });
}
