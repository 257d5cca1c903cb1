import { sql, type Kysely, type RawBuilder, type Transaction } from "kysely";
import { retryWhileBusy } from "./busy.ts";
import type { Schema } from "./schema.ts";
import type { Perform } from "./transactions.ts";

/** An open database of either kind. */
export class Database {
  readonly kind: "sqlite" | "postgres";
  /** For statements that stand alone, inside `retryWhileBusy` when they write. */
  readonly query: Kysely<Schema>;

  /** Runs one of the transactions that have a name, and again when another process was in its way. */
  readonly perform: Perform;

  /** Whether the last statement reached the server. SQLite has none that could be away. */
  readonly isUp: () => boolean;

  constructor(
    kind: "sqlite" | "postgres",
    query: Kysely<Schema>,
    { perform, isUp = () => true }: { readonly perform: Perform; readonly isUp?: () => boolean },
  ) {
    this.kind = kind;
    this.query = query;
    this.isUp = isUp;
    this.perform = (name, input) => retryWhileBusy(() => perform(name, input));
  }

  /**
   * Runs the work in one transaction, and again when another process was in its way. On SQLite nobody else writes
   * meanwhile.
   */
  transaction<T>(work: (transaction: Transaction<Schema>) => Promise<T>): Promise<T> {
    return retryWhileBusy(() => this.query.transaction().execute(work));
  }

  /** The time that all who share the database agree on, in Unix milliseconds: the server's clock, or the machine's. */
  async nowMs(transaction: Kysely<Schema>): Promise<number> {
    if (this.kind === "sqlite") return Date.now();
    const query = sql<{ now: number }>`select (extract(epoch from clock_timestamp()) * 1000)::bigint as now`;
    const { rows } = await query.execute(transaction);
    return rows[0]!.now;
  }

  close(): Promise<void> {
    return this.query.destroy();
  }
}

interface Lockable {
  forUpdate(): this;
  skipLocked(): this;
}

/**
 * Keeps the rows of a query for this transaction, in the order in which the query names them. SQLite has no words for it:
 * its transactions have the whole file to themselves.
 */
export function lockRows<Q extends Lockable>({ kind }: Pick<Database, "kind">, query: Q): Q {
  return kind === "postgres" ? query.forUpdate() : query;
}

/** Keeps the rows of a query that nobody else keeps, and waits for none: whoever has the others looks after them. */
export function skipLocked<Q extends Lockable>({ kind }: Pick<Database, "kind">, query: Q): Q {
  return kind === "postgres" ? query.forUpdate().skipLocked() : query;
}

/**
 * A column to order by, as our own sorting would: PostgreSQL orders by the language of the database, and rows that are
 * locked in two orders end in a deadlock.
 */
export function inCodeUnits({ kind }: Pick<Database, "kind">, column: string): RawBuilder<unknown> {
  return kind === "postgres" ? sql`${sql.ref(column)} collate "C"` : sql`${sql.ref(column)}`;
}
