import type { NewLedgerEntry } from "../../core/ledger.ts";
import { isAttributed } from "../../limits/attributed.ts";
import { PROCESS_LEASE_MS } from "../../ledger/ledger-store.ts";
import { SpendingChanges, takeOff } from "../limits/spending.ts";
import type { BegunCompletionRow, BudgetHoldRow } from "../schema.ts";
import { batchesOf, forUpdate, insertRows, listOf, nowMs, type Statements } from "../statements.ts";
import { insertEntries } from "./ledger-journal.ts";

/*
 * Completions in flight. They are noted before their providers are asked, many in one row, which is removed when all of them
 * have their entries. When a process ends without writing some, another one does, once its lease has ended. The notes are locked
 * before the completions, in all transactions.
 */

/** Notes, and holds, that are ended per transaction. */
const MAX_NOTES = 10;
const MAX_HOLDS = 100;

/** A new note, if there is one, and the IDs of notes that are done. */
export interface BegunChange {
  readonly row: BegunCompletionRow | undefined;
  readonly done: readonly string[];
}

/** Notes completions that have begun, and removes the notes that are done. */
export async function beginCompletions(statements: Statements, { row, done }: BegunChange): Promise<void> {
  for (const batch of batchesOf(statements, done))
    await statements.run(`delete from begun_completions where id in ${listOf(batch.length)}`, batch);
  if (row === undefined) return;
  await insertRows(statements, { into: "begun_completions", rows: [row], ending: "on conflict (id) do nothing" });
}

/** Condition for a row of a process whose lease has ended; its parameter is from `leaseBegin`. */
const IS_LOST = "replica not in (select name from replicas where seen_at_ms >= ?)";

/** Time since which a process must have been seen to have its lease. */
async function leaseBegin(statements: Statements): Promise<number> {
  return (await nowMs(statements)) - PROCESS_LEASE_MS;
}

/** Numbers of notes that were removed, and of entries that were written for their completions. */
export interface SettledNotes {
  readonly notes: number;
  readonly entries: number;
}

/** Removes notes of lost processes, at most MAX_NOTES, and writes the entries that their completions do not have. */
export async function settleLostCompletions(statements: Statements): Promise<SettledNotes> {
  const sinceMs = await leaseBegin(statements);
  const oldest = `select id from begun_completions where ${IS_LOST} order by id limit ${MAX_NOTES} ${forUpdate(statements, "skip locked")}`;
  const taken = `delete from begun_completions where id in (${oldest}) returning entry`;
  const notes = await statements.run<Pick<BegunCompletionRow, "entry">>(taken, [sinceMs]);
  if (notes.length === 0) return { notes: 0, entries: 0 };
  // The release before has a note for each completion.
  const begun = notes.flatMap(({ entry }) => JSON.parse(entry) as NewLedgerEntry | NewLedgerEntry[]);
  const held = await readHeld(
    statements,
    begun.map(({ completionId }) => completionId),
  );
  const endedAtMs = sinceMs + PROCESS_LEASE_MS;
  const entries = begun.map((entry): NewLedgerEntry => {
    const durationMs = Math.max(endedAtMs - entry.startedAtMs, 0);
    return { ...entry, endedAtMs, durationMs, ...held.get(entry.completionId) };
  });
  const { written } = await insertEntries(statements, entries);
  return { notes: notes.length, entries: written };
}

type Held = Pick<NewLedgerEntry, "costMicroUsd" | "spendingMonth">;

/** Money that budgets hold for these completions, the same in each budget, and the month of holds of keys and accounts. */
async function readHeld(statements: Statements, ids: readonly string[]): Promise<ReadonlyMap<string, Held>> {
  const held = new Map<string, Held>();
  for (const batch of batchesOf(statements, ids)) {
    const sql = `select id, subject, month, amount_micro_usd from budget_holds where id in ${listOf(batch.length)}`;
    const rows = await statements.run<Omit<BudgetHoldRow, "expires_at_ms" | "replica">>(sql, batch);
    for (const { id, subject, month, amount_micro_usd } of rows) {
      const spendingMonth = isAttributed(subject) ? held.get(id)?.spendingMonth : month;
      held.set(id, { costMicroUsd: amount_micro_usd, ...(spendingMonth !== undefined && { spendingMonth }) });
    }
  }
  return held;
}

/** Releases holds of lost processes without notes: their completions did not begin. At most MAX_HOLDS. Answers their number. */
export async function releaseLostHolds(statements: Statements): Promise<number> {
  const notBegun = "not exists (select 1 from begun_completions as begun where begun.replica = budget_holds.replica)";
  const which = `where replica is not null and ${IS_LOST} and ${notBegun} order by id, subject limit ${MAX_HOLDS}`;
  const sql = `select * from budget_holds ${which} ${forUpdate(statements, "skip locked")}`;
  const holds = await statements.run<BudgetHoldRow>(sql, [await leaseBegin(statements)]);
  for (const { id, subject } of holds)
    await statements.run("delete from budget_holds where id = ? and subject = ?", [id, subject]);
  const changes = new SpendingChanges();
  takeOff(holds, changes);
  await changes.apply(statements);
  return holds.length;
}
