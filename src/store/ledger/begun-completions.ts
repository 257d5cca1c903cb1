import type { NewLedgerEntry } from "../../core/ledger.ts";
import { PROCESS_LEASE_MS } from "../../ledger/ledger-store.ts";
import { SpendingChanges, takeOff } from "../limits/spending.ts";
import type { BegunCompletionRow, BudgetHoldRow } from "../schema.ts";
import { batchesOf, forUpdate, insertRows, listOf, nowMs, type Statements } from "../statements.ts";
import { insertEntries } from "./ledger-journal.ts";

/*
 * Completions in flight. Each is noted before its provider is asked, and forgotten in the transaction that writes its entry.
 * When a process ends without writing them, another one does, once its lease has ended. The notes are locked before the
 * completions, in all transactions.
 */

/** Completions or holds that are ended per transaction. */
const MAX_ROWS = 100;

/** Notes completions that have begun. */
export async function beginCompletions(statements: Statements, rows: readonly BegunCompletionRow[]): Promise<void> {
  await insertRows(statements, { into: "begun_completions", rows, ending: "on conflict (id) do nothing" });
}

/** Condition for a row of a process whose lease has ended; its parameter is from `leaseBegin`. */
const IS_LOST = "replica not in (select name from replicas where seen_at_ms >= ?)";

/** A process that was not seen since then has lost its lease. */
async function leaseBegin(statements: Statements): Promise<number> {
  return (await nowMs(statements)) - PROCESS_LEASE_MS;
}

/** Writes entries for the completions of lost processes, at most MAX_ROWS. Answers their number. */
export async function settleLostCompletions(statements: Statements): Promise<number> {
  const sinceMs = await leaseBegin(statements);
  const which = `where ${IS_LOST} order by id limit ${MAX_ROWS} ${forUpdate(statements, "skip locked")}`;
  const rows = await statements.run<BegunCompletionRow>(`select * from begun_completions ${which}`, [sinceMs]);
  if (rows.length === 0) return 0;
  const held = await readHeld(
    statements,
    rows.map(({ id }) => id),
  );
  const endedAtMs = sinceMs + PROCESS_LEASE_MS;
  const entries = rows.map(({ id, entry }): NewLedgerEntry => {
    const begun = JSON.parse(entry) as NewLedgerEntry;
    const durationMs = Math.max(endedAtMs - begun.startedAtMs, 0);
    return { ...begun, endedAtMs, durationMs, ...held.get(id) };
  });
  await insertEntries(statements, entries);
  return rows.length;
}

type Held = Pick<NewLedgerEntry, "costMicroUsd" | "spendingMonth">;

/** Amounts that budgets hold for these completions, and their month: the same of each budget. */
async function readHeld(statements: Statements, ids: readonly string[]): Promise<ReadonlyMap<string, Held>> {
  const held = new Map<string, Held>();
  for (const batch of batchesOf(statements, ids)) {
    const sql = `select id, month, amount_micro_usd from budget_holds where id in ${listOf(batch.length)}`;
    const rows = await statements.run<Pick<BudgetHoldRow, "id" | "month" | "amount_micro_usd">>(sql, batch);
    for (const { id, month, amount_micro_usd } of rows)
      held.set(id, { costMicroUsd: amount_micro_usd, spendingMonth: month });
  }
  return held;
}

/** Releases holds of lost processes whose completions did not begin, at most MAX_ROWS. Answers their number. */
export async function releaseLostHolds(statements: Statements): Promise<number> {
  const notBegun = "not exists (select 1 from begun_completions as begun where begun.id = budget_holds.id)";
  const which = `where replica is not null and ${IS_LOST} and ${notBegun} order by id, subject limit ${MAX_ROWS}`;
  const sql = `select * from budget_holds ${which} ${forUpdate(statements, "skip locked")}`;
  const holds = await statements.run<BudgetHoldRow>(sql, [await leaseBegin(statements)]);
  for (const { id, subject } of holds)
    await statements.run("delete from budget_holds where id = ? and subject = ?", [id, subject]);
  const changes = new SpendingChanges();
  takeOff(holds, changes);
  await changes.apply(statements);
  return holds.length;
}
