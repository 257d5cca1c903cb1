import { cancelHolds, holdBudgets, reapHolds } from "./limits/budget-transactions.ts";
import { appendSegment, compactJournal } from "./ledger/ledger-journal.ts";
import type { Statements } from "./statements.ts";

/**
 * The transactions that every completion waits for. They have names so that they can be asked for in one message to
 * SQLite's thread, and run there: with their statements sent one by one, most of their cost would be in the messages. What
 * they take and answer can be sent to a thread, and they wait for nothing but their statements.
 */
const TRANSACTIONS = { appendSegment, compactJournal, holdBudgets, cancelHolds, reapHolds };

export type TransactionName = keyof typeof TRANSACTIONS;
export type TransactionInput<N extends TransactionName> = Parameters<(typeof TRANSACTIONS)[N]>[1];
export type TransactionAnswer<N extends TransactionName> = Awaited<ReturnType<(typeof TRANSACTIONS)[N]>>;

/** Asks for a transaction by its name: all of it happens, or nothing. */
export type Perform = <N extends TransactionName>(name: N, input: TransactionInput<N>) => Promise<TransactionAnswer<N>>;

/** What happens inside the transaction of this name. */
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
