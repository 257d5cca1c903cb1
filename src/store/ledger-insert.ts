import type { NewLedgerEntry } from "../core/ledger.ts";
import { monthOf } from "../limits/budgets.ts";
import { releaseHolds } from "./budget-holds.ts";
import { toCompletionRow } from "./ledger-rows.ts";
import { compare, SpendingChanges } from "./spending.ts";
import { batchesOf, insertRows, type Statements } from "./statements.ts";

/**
 * Writes the entries that are not there yet, settles what budgets hold for them, adds them to what their keys and accounts
 * have spent, and notes when the keys were last used.
 */
export async function insertEntries(statements: Statements, entries: readonly NewLedgerEntry[]): Promise<void> {
  const written = await insertNew(statements, entries);
  if (written.length === 0) return;
  const changes = new SpendingChanges();
  const ids = written.map(({ completionId }) => completionId);
  const monthsHeld = await releaseHolds(statements, { ids, changes });
  for (const { completionId, keyId, lineId = keyId, accountId, startedAtMs, costMicroUsd } of written) {
    // The month whose budget let it in, where there is one: by the database's clock, and not by the replica's.
    const month = monthsHeld.get(completionId) ?? monthOf(startedAtMs);
    for (const subject of [`key:${lineId}`, `account:${accountId}`])
      changes.add({ subject, month, spent_micro_usd: costMicroUsd, held_micro_usd: 0 });
  }
  await changes.apply(statements);
  await noteUse(statements, written);
}

/** Answers which entries it has written: each once, in an order that all processes share. */
async function insertNew(statements: Statements, entries: readonly NewLedgerEntry[]): Promise<NewLedgerEntry[]> {
  const distinct = new Map(entries.map((entry) => [entry.completionId, entry]));
  const sorted = [...distinct.values()].toSorted((a, b) => compare(a.completionId, b.completionId));
  const inserted = await insertRows<"completions", { readonly id: string }>(statements, {
    into: "completions",
    rows: sorted.map(toCompletionRow),
    ending: "on conflict (id) do nothing returning id",
  });
  const ids = new Set(inserted.map(({ id }) => id));
  return sorted.filter(({ completionId }) => ids.has(completionId));
}

/** Notes when keys were last used. No two transactions do this for one key at once: its spending was changed before. */
async function noteUse(statements: Statements, entries: readonly NewLedgerEntry[]): Promise<void> {
  const latest = new Map<string, number>();
  for (const { keyId, endedAtMs } of entries)
    latest.set(keyId, Math.max(latest.get(keyId) ?? 0, Math.round(endedAtMs)));
  for (const batch of batchesOf(statements, [...latest])) {
    const uses = batch.map(() => "(?, cast(? as bigint))").join(", ");
    // Both databases call the columns of a list of values so.
    const sql = `update api_keys set last_used_at_ms = uses.column2 from (values ${uses}) as uses
      where id = uses.column1 and (last_used_at_ms is null or last_used_at_ms < uses.column2)`;
    await statements.run(sql, batch.flat());
  }
}
