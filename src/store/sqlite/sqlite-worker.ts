// Entry point of SQLite's thread: SQLite blocks the calling thread while it waits for the disk and for locks.
import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import { BoundedMap } from "../../core/bounded-map.ts";
import { openSqlite, SYNCED_COMMITS, UNSYNCED_COMMITS } from "./sqlite.ts";
import type { Statements } from "../statements.ts";
import type { TransactionInput, TransactionName } from "../transactions.ts";

/** One statement, or a whole transaction. */
export type SqliteWork =
  | { readonly sql: string; readonly parameters: readonly unknown[] }
  | { readonly transaction: TransactionName; readonly input: unknown };

/** Work, or the final message. */
export type SqliteRequest = { readonly id: number; readonly work: SqliteWork } | "close";

export interface SqliteRows {
  readonly rows: readonly unknown[];
  /** Number of changed rows, for a statement that returns none. */
  readonly changes: number | undefined;
}

/** The fields of an error, because sending an error to another thread loses those that not every error has. */
interface SqliteFault {
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

/**
 * Limit of cached statements, because preparing costs more than running most of them. Statements of batches differ by size.
 */
const MAX_PREPARED = 200;

const { file } = workerData as { file: string };
const prepared = new BoundedMap<string, Prepared>(MAX_PREPARED);
let database: DatabaseSync | undefined;
/** Loaded for the first transaction, since the thread of reports has none: loading it takes half of a thread's start. */
let transactions: typeof import("../transactions.ts") | undefined;

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
    // Opened by the first statement; a failure is that statement's error, and the next one tries again.
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

/** Runs a transaction. SQLite answers synchronously, so no other message comes between its statements. */
async function perform(
  open: DatabaseSync,
  { transaction, input }: Extract<SqliteWork, { readonly transaction: unknown }>,
): Promise<unknown> {
  const { runTransaction, UNSYNCED } = (transactions ??= await import("../transactions.ts"));
  const statements: Statements = {
    kind: "sqlite",
    run: async <R>(sql: string, parameters: readonly unknown[]) => execute(open, sql, parameters).rows as readonly R[],
  };
  const isUnsynced = UNSYNCED.has(transaction);
  if (isUnsynced) open.exec(UNSYNCED_COMMITS);
  try {
    // A plain "begin" takes the write lock only at the first write, when it is too late to wait for it.
    execute(open, "begin immediate");
    const answer = await runTransaction(statements, transaction, input as TransactionInput<TransactionName>);
    execute(open, "commit");
    return answer;
  } catch (error) {
    execute(open, "rollback");
    throw error;
  } finally {
    if (isUnsynced) open.exec(SYNCED_COMMITS);
  }
}

function execute(open: DatabaseSync, sql: string, parameters: readonly unknown[] = []): SqliteRows {
  // SQLite has already rolled back after some errors, such as a full disk.
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
