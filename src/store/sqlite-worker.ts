// Runs in a thread of its own: SQLite waits for the disk and for locks on the thread that calls it.
import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import { openSqlite } from "./sqlite.ts";

/** One statement to run, or the last message of all. */
export type SqliteRequest =
  | { readonly id: number; readonly sql: string; readonly parameters: readonly unknown[] }
  | "close";

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
  | { readonly id: number; readonly result: SqliteRows }
  | { readonly id: number; readonly fault: SqliteFault };

/** Preparing costs more than running most statements. Those of a batch differ by its size, so not all are kept. */
const MAX_PREPARED = 200;

const { file } = workerData as { file: string };
const prepared = new Map<string, StatementSync>();
let database: DatabaseSync | undefined;

parentPort?.on("message", (request: SqliteRequest) => {
  if (request === "close") {
    database?.close();
    parentPort?.close();
    return;
  }
  const { id } = request;
  let reply: SqliteReply;
  try {
    // Opened by the first statement, and again by the next one when that fails: whoever asks hears what is wrong.
    database ??= openSqlite(file);
    reply = { id, result: run(database, request) };
  } catch (error) {
    reply = { id, fault: describe(error) };
  }
  parentPort?.postMessage(reply, []);
});

function run(open: DatabaseSync, { sql, parameters }: Exclude<SqliteRequest, "close">): SqliteRows {
  // A full disk, for one, has ended the transaction already.
  if (sql === "rollback" && !open.isTransaction) return { rows: [], changes: undefined };
  const statement = prepare(open, sql);
  const values = parameters as SQLInputValue[];
  if (statement.columns().length > 0) return { rows: statement.all(...values), changes: undefined };
  return { rows: [], changes: Number(statement.run(...values).changes) };
}

function prepare(open: DatabaseSync, sql: string): StatementSync {
  const known = prepared.get(sql);
  if (known !== undefined) return known;
  const statement = open.prepare(sql);
  const [oldest] = prepared.keys();
  if (prepared.size >= MAX_PREPARED && oldest !== undefined) prepared.delete(oldest);
  prepared.set(sql, statement);
  return statement;
}

function describe(error: unknown): SqliteFault {
  const { message, code, errcode, errstr } = error as Error & Partial<SqliteFault>;
  return { message, code, errcode, errstr };
}
