import type { Worker } from "node:worker_threads";
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
import { startThread } from "../../installation/own-programs.ts";
import { StoreError } from "../store-error.ts";
import type { Perform, TransactionAnswer } from "../transactions.ts";
import type { SqliteReply, SqliteRequest, SqliteRows, SqliteWork } from "./sqlite-worker.ts";

export interface SqliteThreadOptions {
  readonly file: string;
  /** Limit for one statement; undefined for none. */
  readonly limitMs: number | undefined;
  /** The error of a statement that exceeds the limit. Default: one that names the disk as the cause. */
  readonly overTime?: (() => StoreError) | undefined;
}

/** Statements of completions are short. */
const stuckDisk = (): StoreError =>
  new StoreError("The database has not answered in time; check the disk that holds it.");

/** SQLite in a worker thread, for Kysely. A dead thread is replaced at the next query. */
export class SqliteThreadDialect implements Dialect {
  readonly #driver: SqliteThreadDriver;

  constructor(options: SqliteThreadOptions) {
    this.#driver = new SqliteThreadDriver(options);
  }

  /** Terminates the thread, for tests. */
  async killThread(): Promise<void> {
    await this.#driver.killThread();
  }

  /** Runs a whole transaction in the thread, with one message in each direction. */
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

/** Turns off Kysely's lock for single connections, which wakes all waiting queries each time; the driver has a queue. */
class QueuedSqliteAdapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true;
  }
}

class SqliteThreadDriver implements Driver {
  readonly #options: SqliteThreadOptions;
  #thread: SqliteThread | undefined;
  /** There is one connection, whose holder may be in a transaction: others wait in `#waiting`, first in, first out. */
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
    // A plain "begin" takes the write lock only at the first write, when it is too late to wait for it.
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

/** Bound to one thread: the rest of a transaction must not run in that thread's successor. */
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

  // oxlint-disable-next-line require-yield -- rows are not streamed
  async *streamQuery(): AsyncIterableIterator<never> {
    throw new Error("the SQLite dialect does not stream rows");
  }
}

interface Pending {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
  readonly cancelTimer: () => void;
}

/** Limit for a thread to close its file. */
const CLOSING_MS = 2_000;

/**
 * A thread with one SQLite connection. It ends for good when it is closed, dies or exceeds `limitMs`: pending and later
 * queries are then rejected.
 */
class SqliteThread {
  readonly #worker: Worker;
  readonly #limitMs: number | undefined;
  readonly #overTime: () => StoreError;
  readonly #pending = new Map<number, Pending>();
  readonly #exited: Promise<void>;
  #lastId = 0;
  #end: StoreError | undefined;

  /** `limitMs` is the limit for a statement or a transaction; undefined for none. */
  constructor({ file, limitMs, overTime = stuckDisk }: SqliteThreadOptions) {
    this.#limitMs = limitMs;
    this.#overTime = overTime;
    this.#worker = startThread("sqlite-worker", import.meta.url, { workerData: { file }, name: "sqlite" });
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

  /** Runs a transaction; no other one may be open. Rejects as `execute` does, and then nothing has changed. */
  readonly perform: Perform = async (name, input) =>
    (await this.#ask({ transaction: name, input })) as TransactionAnswer<typeof name>;

  #ask(work: SqliteWork): Promise<unknown> {
    if (this.#end !== undefined) return Promise.reject(this.#end);
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      const timer = this.#limitMs === undefined ? undefined : setTimeout(() => this.#giveUp(), this.#limitMs);
      this.#pending.set(id, { resolve, reject, cancelTimer: () => clearTimeout(timer) });
      // The thread keeps the process alive only while it has work.
      this.#worker.ref();
      this.#post({ id, work });
    });
  }

  /** Terminates the thread at once. */
  async kill(): Promise<void> {
    await this.#worker.terminate();
  }

  /** Lets running statements end, and closes the file. */
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
    this.#lose(this.#overTime());
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
