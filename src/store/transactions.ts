import { appendAudit, pruneAudit, takeSecurityEvents } from "./access/audit-transactions.ts";
import { cancelHolds, holdBudgets, reapHolds } from "./limits/budget-transactions.ts";
import { pruneSpending } from "./limits/spending.ts";
import { endLostCompletions, releaseLostHolds, settleLostCompletions } from "./ledger/begun-completions.ts";
import { writeLeaders } from "./ledger/leader-rows.ts";
import { appendSegment, compactJournal } from "./ledger/ledger-journal.ts";
import { addRefusals } from "./ledger/add-refusals.ts";
import { createPartitions } from "./postgres/partitions.ts";
import type { Statements } from "./statements.ts";

/**
 * Transactions on the path of every completion, and of many requests. Named, so that one message to SQLite's thread runs a whole transaction:
 * sending its statements one by one would cost more than running them. Their inputs and answers can be sent to a thread, and
 * they wait only for their statements.
 */
const TRANSACTIONS = {
  appendSegment,
  compactJournal,
  addRefusals,
  createPartitions,
  writeLeaders,
  endLostCompletions,
  settleLostCompletions,
  releaseLostHolds,
  holdBudgets,
  cancelHolds,
  reapHolds,
  pruneSpending,
  appendAudit,
  pruneAudit,
  takeSecurityEvents,
};

/** Transactions that do not wait for the disk: a crash of the machine may undo them, but not the end of a process. */
export const UNSYNCED: ReadonlySet<TransactionName> = new Set(["addRefusals"]);

export type TransactionName = keyof typeof TRANSACTIONS;
export type TransactionInput<N extends TransactionName> = Parameters<(typeof TRANSACTIONS)[N]>[1];
export type TransactionAnswer<N extends TransactionName> = Awaited<ReturnType<(typeof TRANSACTIONS)[N]>>;

/** Runs a transaction by its name, atomically. */
export type Perform = <N extends TransactionName>(name: N, input: TransactionInput<N>) => Promise<TransactionAnswer<N>>;

/** The statements of the transaction with this name. */
export function runTransaction<N extends TransactionName>(
  statements: Statements,
  name: N,
  input: TransactionInput<N>,
): Promise<TransactionAnswer<N>> {
  const work = TRANSACTIONS[name] as (
    statements: Statements,
    input: TransactionInput<N>,
  ) => Promise<TransactionAnswer<N>>;
  return work(statements, input);
}
