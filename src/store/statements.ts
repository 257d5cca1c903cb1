import type { Schema } from "./schema.ts";

/*
 * The SQL of the transactions that every completion waits for. Written out, not built by Kysely: they also run in SQLite's
 * thread, which would have to load it, and building the statement costs more than SQLite takes to run it.
 */

/** Type of parameters and results. */
type SqlValue = string | number | null;

/** Runs the statements of one transaction. */
export interface Statements {
  readonly kind: "sqlite" | "postgres";
  /** Runs one statement with a `?` for each parameter, and answers its rows. */
  run<R>(sql: string, parameters: readonly SqlValue[]): Promise<readonly R[]>;
}

/**
 * Batch size on SQLite, which caches prepared statements by text: each statement has two texts, for a full batch and for one
 * item.
 */
const SQLITE_BATCH = 16;

/**
 * Splits items into the batches of one statement each. On PostgreSQL each statement is a round trip, so batches are large.
 */
export function batchesOf<T>({ kind }: Pick<Statements, "kind">, items: readonly T[]): T[][] {
  if (kind === "postgres") return chunksOf(items);
  const inFull = items.length - (items.length % SQLITE_BATCH);
  return [...chunksOf(items.slice(0, inFull), SQLITE_BATCH), ...chunksOf(items.slice(inFull), 1)];
}

/** Placeholders in parentheses: `(?, ?, ?)`. */
export function listOf(count: number): string {
  return `(${"?, ".repeat(count - 1)}?)`;
}

/** Inserts rows in order. `ending` follows their values: an `on conflict` or `returning` clause. */
export async function insertRows<T extends keyof Schema, R>(
  statements: Statements,
  { into, rows, ending = "" }: { readonly into: T; readonly rows: readonly Schema[T][]; readonly ending?: string },
): Promise<R[]> {
  const [first] = rows;
  if (first === undefined) return [];
  const columns = Object.keys(first) as (keyof Schema[T])[];
  const row = listOf(columns.length);
  const start = `insert into ${into} (${columns.join(", ")}) values`;
  const answered: R[] = [];
  for (const batch of batchesOf(statements, rows)) {
    const sql = `${start} ${batch.map(() => row).join(", ")} ${ending}`;
    const parameters = batch.flatMap((each) => columns.map((column) => each[column] as SqlValue));
    answered.push(...(await statements.run<R>(sql, parameters)));
  }
  return answered;
}

/**
 * Clause that locks the rows of a query for this transaction. Empty for SQLite, whose write transactions lock the whole
 * file.
 */
export function forUpdate({ kind }: Pick<Statements, "kind">, others: "wait" | "skip locked" = "wait"): string {
  if (kind === "sqlite") return "";
  return others === "wait" ? "for update" : "for update skip locked";
}

/**
 * Time shared by all processes on the database, in Unix milliseconds: the server's clock, or the machine's with SQLite. `lockMs` limits
 * the wait of PostgreSQL for each lock of the transaction: in the same statement, which is a round trip.
 */
export async function nowMs(statements: Statements, { lockMs }: { readonly lockMs?: number } = {}): Promise<number> {
  if (statements.kind === "sqlite") return Date.now();
  const limit = lockMs === undefined ? "" : `, set_config('lock_timeout', '${lockMs}', true)`;
  const sql = `select (extract(epoch from clock_timestamp()) * 1000)::bigint as now${limit}`;
  const [row] = await statements.run<{ now: number }>(sql, []);
  return row!.now;
}

/** Limits the wait of PostgreSQL for each further lock of the transaction, while it keeps the locks of others from other transactions. */
export async function limitLockWaits(statements: Statements, lockMs: number): Promise<void> {
  if (statements.kind === "postgres") await statements.run(`set local lock_timeout = ${lockMs}`, []);
}

/** Splits a list into chunks, because databases limit the parameters of a statement. */
export function chunksOf<T>(items: readonly T[], size = 500): T[][] {
  const chunks: T[][] = [];
  for (let start = 0; start < items.length; start += size) chunks.push(items.slice(start, start + size));
  return chunks;
}
