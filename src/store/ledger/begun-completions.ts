import type { NewLedgerEntry } from "../../core/ledger.ts";
import { isAttributed } from "../../limits/attributed.ts";
import { SpendingChanges, takeOff } from "../limits/spending.ts";
import type { BegunCompletionRow, BudgetHoldRow } from "../schema.ts";
import { batchesOf, forUpdate, listOf, nowMs, type Statements } from "../statements.ts";
import { insertEntries } from "./ledger-journal.ts";

/*
 * Completions in flight. They are noted before their providers are asked, many in one row, which is removed when all of them
 * have their entries. When a process ends without writing some, another one does, once its lease has ended. The notes are locked
 * before the completions, in all transactions.
 */

/** Notes, and holds, that are ended per transaction. */
const MAX_NOTES = 10;
const MAX_HOLDS = 100;

/** Condition for a row of a process whose lease has ended; its parameter is the time since which it must have been seen. */
const IS_LOST = "replica not in (select name from replicas where seen_at_ms >= ?)";

/** Numbers of notes that were removed, and of entries that were written for their completions. */
export interface SettledNotes {
  readonly notes: number;
  readonly entries: number;
}

/**
 * Removes notes of processes that were not seen since `sinceMs`, at most MAX_NOTES, and writes the entries that their completions do
 * not have.
 */
export async function settleLostCompletions(statements: Statements, sinceMs: number): Promise<SettledNotes> {
  const oldest = `select id from begun_completions where ${IS_LOST} order by id limit ${MAX_NOTES} ${forUpdate(statements, "skip locked")}`;
  const taken = `delete from begun_completions where id in (${oldest}) returning entry`;
  const notes = await statements.run<Pick<BegunCompletionRow, "entry">>(taken, [sinceMs]);
  if (notes.length === 0) return { notes: 0, entries: 0 };
  // The release before has a note for each completion.
  const begun = notes.flatMap(({ entry }) => JSON.parse(entry) as NewLedgerEntry | NewLedgerEntry[]);
  return { notes: notes.length, entries: await endLostCompletions(statements, begun) };
}

/**
 * Writes the entries of completions whose process is lost. Those that have entries stay as they are, also when their process was settled
 * before: then their holds are gone. Answers the number of entries.
 */
export async function endLostCompletions(statements: Statements, begun: readonly NewLedgerEntry[]): Promise<number> {
  const endedAtMs = await nowMs(statements);
  const missing = new Map(begun.map((entry) => [entry.completionId, entry]));
  for (const batch of batchesOf(statements, [...missing.keys()])) {
    const sql = `select id from completions where id in ${listOf(batch.length)}`;
    for (const { id } of await statements.run<{ readonly id: string }>(sql, batch)) missing.delete(id);
  }
  const held = await readHeld(statements, [...missing.keys()]);
  const entries = [...missing.values()].map((entry): NewLedgerEntry => {
    const durationMs = Math.max(endedAtMs - entry.startedAtMs, 0);
    return { ...entry, endedAtMs, durationMs, ...held.get(entry.completionId) };
  });
  return (await insertEntries(statements, entries)).written;
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

/**
 * Releases holds of processes that were not seen since `sinceMs` and have no notes: their completions did not begin. At most MAX_HOLDS.
 * Answers their number.
 */
export async function releaseLostHolds(statements: Statements, sinceMs: number): Promise<number> {
  const notBegun = "not exists (select 1 from begun_completions as begun where begun.replica = budget_holds.replica)";
  const which = `where replica is not null and ${IS_LOST} and ${notBegun} order by id, subject limit ${MAX_HOLDS}`;
  const sql = `select * from budget_holds ${which} ${forUpdate(statements, "skip locked")}`;
  const holds = await statements.run<BudgetHoldRow>(sql, [sinceMs]);
  for (const { id, subject } of holds)
    await statements.run("delete from budget_holds where id = ? and subject = ?", [id, subject]);
  const changes = new SpendingChanges();
  takeOff(holds, changes);
  await changes.apply(statements);
  return holds.length;
}
