import {
  CompiledQuery,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type Kysely,
  type QueryResult,
} from "kysely";
import { SqliteThread } from "./thread.ts";
import { StoreError } from "../store-error.ts";
import type { Perform } from "../transactions.ts";

export interface SqliteThreadOptions {
  readonly file: string;
  /** How long one statement may take; undefined for as long as it needs. */
  readonly limitMs: number | undefined;
}

/** SQLite in a thread of its own, for Kysely. A thread that has died is replaced at the next query. */
export class SqliteThreadDialect implements Dialect {
  readonly #driver: SqliteThreadDriver;

  constructor(options: SqliteThreadOptions) {
    this.#driver = new SqliteThreadDriver(options);
  }

  /** Ends the thread as a fault would: for tests. */
  async killThread(): Promise<void> {
    await this.#driver.killThread();
  }

  /** Runs a whole transaction in the thread: one message there and one back. */
  readonly perform: Perform = (name, input) => this.#driver.perform(name, input);

  createDriver(): Driver {
    return this.#driver;
  }

  createQueryCompiler(): SqliteQueryCompiler {
    return new SqliteQueryCompiler();
  }

  createAdapter(): SqliteAdapter {
    return new QueuedSqliteAdapter();
  }

  createIntrospector(database: Kysely<unknown>): SqliteIntrospector {
    return new SqliteIntrospector(database);
  }
}

/** Kysely's own lock for single connections wakes all who wait for each one that goes on; the driver has a queue. */
class QueuedSqliteAdapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true;
  }
}

class SqliteThreadDriver implements Driver {
  readonly #options: SqliteThreadOptions;
  #thread: SqliteThread | undefined;
  /** One connection, and whoever holds it may be in a transaction: the others wait here, first come, first served. */
  #isTaken = false;
  #isClosed = false;
  readonly #waiting: (() => void)[] = [];

  constructor(options: SqliteThreadOptions) {
    this.#options = options;
  }

  async init(): Promise<void> {
    // The thread starts with the first query.
  }

  async acquireConnection(): Promise<SqliteThreadConnection> {
    if (this.#isTaken) await new Promise<void>((resolve) => void this.#waiting.push(resolve));
    this.#isTaken = true;
    if (this.#isClosed) {
      await this.releaseConnection();
      throw new StoreError("The database is closed.");
    }
    if (this.#thread === undefined || this.#thread.ended) this.#thread = new SqliteThread(this.#options);
    return new SqliteThreadConnection(this.#thread);
  }

  async releaseConnection(): Promise<void> {
    const next = this.#waiting.shift();
    if (next === undefined) this.#isTaken = false;
    else next();
  }

  readonly perform: Perform = (name, input) =>
    this.acquireConnection().then((connection) =>
      connection.perform(name, input).finally(() => void this.releaseConnection()),
    );

  async beginTransaction(connection: DatabaseConnection): Promise<void> {
    // A plain "begin" takes the write lock at the first write, when it is too late to wait for it.
    await connection.executeQuery(CompiledQuery.raw("begin immediate"));
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw("commit"));
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw("rollback"));
  }

  async destroy(): Promise<void> {
    this.#isClosed = true;
    await this.#thread?.close();
  }

  async killThread(): Promise<void> {
    await this.#thread?.kill();
  }
}

/** Stays with the thread it was made for: the rest of a transaction must not be run by that thread's successor. */
class SqliteThreadConnection implements DatabaseConnection {
  readonly #thread: SqliteThread;

  constructor(thread: SqliteThread) {
    this.#thread = thread;
  }

  async executeQuery<R>({ sql, parameters }: CompiledQuery): Promise<QueryResult<R>> {
    const { rows, changes } = await this.#thread.execute(sql, parameters);
    return { rows: rows as R[], ...(changes !== undefined && { numAffectedRows: BigInt(changes) }) };
  }

  readonly perform: Perform = (name, input) => this.#thread.perform(name, input);

  // oxlint-disable-next-line require-yield -- nothing is streamed
  async *streamQuery(): AsyncIterableIterator<never> {
    throw new Error("rows are not streamed from the database's thread");
  }
}
