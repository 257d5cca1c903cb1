// Runs in a thread of its own: SQLite waits for the disk and for locks on the thread that calls it.
import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import { BoundedMap } from "../../core/bounded-map.ts";
import { openSqlite } from "./sqlite.ts";
import type { Statements } from "../statements.ts";
import { runTransaction, type TransactionInput, type TransactionName } from "../transactions.ts";

/** What is to be done: one statement, or a whole transaction. */
export type SqliteWork =
  | { readonly sql: string; readonly parameters: readonly unknown[] }
  | { readonly transaction: TransactionName; readonly input: unknown };

/** Work, or the last message of all. */
export type SqliteRequest = { readonly id: number; readonly work: SqliteWork } | "close";

export interface SqliteRows {
  readonly rows: readonly unknown[];
  /** How many rows a statement that returns none has changed. */
  readonly changes: number | undefined;
}

/** What was wrong: an error loses what is not in every error when it is sent to another thread. */
export interface SqliteFault {
  readonly message: string;
  readonly code: string | undefined;
  readonly errcode: number | undefined;
  readonly errstr: string | undefined;
}

export type SqliteReply =
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly fault: SqliteFault };

interface Prepared {
  readonly statement: StatementSync;
  readonly answersRows: boolean;
}

/** Preparing costs more than running most statements. Those of a batch differ by its size, so not all are kept. */
const MAX_PREPARED = 200;

const { file } = workerData as { file: string };
const prepared = new BoundedMap<string, Prepared>(MAX_PREPARED);
let database: DatabaseSync | undefined;

parentPort?.on("message", (request: SqliteRequest) => {
  if (request === "close") {
    database?.close();
    parentPort?.close();
    return;
  }
  void replyTo(request);
});

async function replyTo({ id, work }: Exclude<SqliteRequest, "close">): Promise<void> {
  let reply: SqliteReply;
  try {
    // Opened by the first statement, and again by the next one when that fails: whoever asks hears what is wrong.
    database ??= openSqlite(file);
    reply = {
      id,
      result: "sql" in work ? execute(database, work.sql, work.parameters) : await perform(database, work),
    };
  } catch (error) {
    reply = { id, fault: describe(error) };
  }
  parentPort?.postMessage(reply, []);
}

/** SQLite answers at once, so that no other message comes between the statements. */
async function perform(
  open: DatabaseSync,
  { transaction, input }: Extract<SqliteWork, { readonly transaction: unknown }>,
): Promise<unknown> {
  const statements: Statements = {
    kind: "sqlite",
    run: async <R>(sql: string, parameters: readonly unknown[]) => execute(open, sql, parameters).rows as readonly R[],
  };
  // A plain "begin" takes the write lock at the first write, when it is too late to wait for it.
  execute(open, "begin immediate");
  try {
    const answer = await runTransaction(statements, transaction, input as TransactionInput<TransactionName>);
    execute(open, "commit");
    return answer;
  } catch (error) {
    execute(open, "rollback");
    throw error;
  }
}

function execute(open: DatabaseSync, sql: string, parameters: readonly unknown[] = []): SqliteRows {
  // A full disk, for one, has ended the transaction already.
  if (sql === "rollback" && !open.isTransaction) return { rows: [], changes: undefined };
  const { statement, answersRows } = prepare(open, sql);
  const values = parameters as SQLInputValue[];
  if (answersRows) return { rows: statement.all(...values), changes: undefined };
  return { rows: [], changes: Number(statement.run(...values).changes) };
}

function prepare(open: DatabaseSync, sql: string): Prepared {
  const known = prepared.get(sql);
  if (known !== undefined) return known;
  const statement = open.prepare(sql);
  const made = { statement, answersRows: statement.columns().length > 0 };
  prepared.set(sql, made);
  return made;
}

function describe(error: unknown): SqliteFault {
  const { message, code, errcode, errstr } = error as Error & Partial<SqliteFault>;
  return { message, code, errcode, errstr };
}
