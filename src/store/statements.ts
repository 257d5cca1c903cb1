import type { Schema } from "./schema.ts";

/*
 * The SQL of the transactions that every completion waits for. Written out, not built by Kysely: they also run in SQLite's
 * thread, which would have to load it, and building the statement costs more than SQLite takes to run it.
 */

/** What a statement may be given, and what it answers. */
export type SqlValue = string | number | null;

/** Runs the statements of one transaction. */
export interface Statements {
  readonly kind: "sqlite" | "postgres";
  /** Runs one statement, in which a `?` stands for each parameter, and answers its rows. */
  run<R>(sql: string, parameters: readonly SqlValue[]): Promise<readonly R[]>;
}

/** SQLite prepares each text once: of every statement there are two, for so many things and for one. */
const SQLITE_BATCH = 16;

/** Lists of as many things as one statement should name. To PostgreSQL every statement is a journey. */
export function batchesOf<T>({ kind }: Pick<Statements, "kind">, items: readonly T[]): T[][] {
  if (kind === "postgres") return chunksOf(items);
  const inFull = items.length - (items.length % SQLITE_BATCH);
  return [...chunksOf(items.slice(0, inFull), SQLITE_BATCH), ...chunksOf(items.slice(inFull), 1)];
}

/** So many parameters in parentheses: `(?, ?, ?)`. */
export function listOf(count: number): string {
  return `(${"?, ".repeat(count - 1)}?)`;
}

/** Inserts rows in their order. `ending` is what follows their values: what to do about conflicts, and what to answer. */
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

/** Ends a query whose rows are to be kept for this transaction. SQLite's transactions have the whole file to themselves. */
export function forUpdate({ kind }: Pick<Statements, "kind">, others: "wait" | "skip locked" = "wait"): string {
  if (kind === "sqlite") return "";
  return others === "wait" ? "for update" : "for update skip locked";
}

/** The time that all who share the database agree on, in Unix milliseconds: the server's clock, or the machine's. */
export async function nowMs(statements: Statements): Promise<number> {
  if (statements.kind === "sqlite") return Date.now();
  const sql = "select (extract(epoch from clock_timestamp()) * 1000)::bigint as now";
  const [row] = await statements.run<{ now: number }>(sql, []);
  return row!.now;
}

/** Lists of at most this many: databases limit the parameters of a statement. */
export function chunksOf<T>(items: readonly T[], size = 500): T[][] {
  const chunks: T[][] = [];
  for (let start = 0; start < items.length; start += size) chunks.push(items.slice(start, start + size));
  return chunks;
}
