import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type Kysely,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from "kysely";
import { StoreError } from "../store-error.ts";
import type { Perform, TransactionAnswer } from "../transactions.ts";
import type { SqliteReply, SqliteRequest, SqliteRows, SqliteWork } from "./sqlite-worker.ts";

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

interface Pending {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
  readonly cancelTimer: () => void;
}

/** How long a thread may take to close its file. */
const CLOSING_MS = 2_000;

/**
 * One thread with one SQLite connection. It ends for good when it is closed, dies, or does not answer in time: what waits
 * for it is rejected then, and so is everything that is asked of it later.
 */
class SqliteThread {
  readonly #worker: Worker;
  readonly #limitMs: number | undefined;
  readonly #pending = new Map<number, Pending>();
  readonly #exited: Promise<void>;
  #lastId = 0;
  #end: StoreError | undefined;

  /** `limitMs` is how long a statement or a transaction may take; undefined for as long as it needs. */
  constructor({ file, limitMs }: { readonly file: string; readonly limitMs: number | undefined }) {
    this.#limitMs = limitMs;
    // The built program is JavaScript, the sources are not.
    const program = new URL(`./sqlite-worker${extname(import.meta.url)}`, import.meta.url);
    this.#worker = new Worker(program, { workerData: { file }, name: "sqlite" });
    this.#worker.unref();
    this.#worker.on("message", (reply: SqliteReply) => this.#answer(reply));
    this.#worker.on("error", (cause: Error) => this.#lose(new StoreError("The database's thread failed.", { cause })));
    this.#exited = new Promise((resolve) => {
      this.#worker.on("exit", () => {
        this.#lose(new StoreError("The database's thread has ended."));
        resolve();
      });
    });
  }

  get ended(): boolean {
    return this.#end !== undefined;
  }

  /** Runs one statement. Rejects with SQLite's error (`errcode`, `errstr`), or a StoreError when the thread has ended. */
  async execute(sql: string, parameters: readonly unknown[]): Promise<SqliteRows> {
    return (await this.#ask({ sql, parameters })) as SqliteRows;
  }

  /** Runs a transaction, outside any other. Rejects as `execute` does: then nothing of it has happened. */
  readonly perform: Perform = async (name, input) =>
    (await this.#ask({ transaction: name, input })) as TransactionAnswer<typeof name>;

  #ask(work: SqliteWork): Promise<unknown> {
    if (this.#end !== undefined) return Promise.reject(this.#end);
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      const timer = this.#limitMs === undefined ? undefined : setTimeout(() => this.#giveUp(), this.#limitMs);
      this.#pending.set(id, { resolve, reject, cancelTimer: () => clearTimeout(timer) });
      // Only work keeps the process from ending.
      this.#worker.ref();
      this.#post({ id, work });
    });
  }

  /** Ends the thread, whatever it is doing, as a fault of its own would. */
  async kill(): Promise<void> {
    await this.#worker.terminate();
  }

  /** Lets the statements under way end, and closes the file. */
  async close(): Promise<void> {
    if (this.#end === undefined) this.#post("close");
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, CLOSING_MS);
    });
    await Promise.race([this.#exited, late]);
    clearTimeout(timer);
    await this.#worker.terminate();
  }

  #post(request: SqliteRequest): void {
    this.#worker.postMessage(request, []);
  }

  #answer(reply: SqliteReply): void {
    const pending = this.#pending.get(reply.id);
    if (pending === undefined) return;
    this.#pending.delete(reply.id);
    pending.cancelTimer();
    if (this.#pending.size === 0) this.#worker.unref();
    if ("result" in reply) pending.resolve(reply.result);
    else pending.reject(Object.assign(new Error(reply.fault.message), reply.fault));
  }

  #giveUp(): void {
    this.#lose(new StoreError("The database has not answered in time. Look at the disk it is on."));
    void this.#worker.terminate();
  }

  #lose(error: StoreError): void {
    this.#end ??= error;
    for (const { reject, cancelTimer } of this.#pending.values()) {
      cancelTimer();
      reject(this.#end);
    }
    this.#pending.clear();
  }
}
