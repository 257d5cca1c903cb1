import type { PostgresPool, PostgresPoolClient } from "kysely";
import pg from "pg";
import type { StoreError } from "../store-error.ts";
import { HostChoice, parseHosts } from "./host-choice.ts";
import { isConnectionError, isTooLong, POOL_FULL, READ_ONLY, toStoreError } from "./postgres-error.ts";

const CONNECT_MS = 2_000;
/** Limit for a statement, unless it is given another one. */
export const QUERY_MS = 2_000;
/**
 * The server's part of the limit: shorter, so that a slow statement fails without losing its connection. The whole is for hung
 * servers.
 */
const STATEMENT_SHARE = 0.9;
/**
 * Longest pause within a transaction, of connections with a limit. PostgreSQL then ends it, and its locks: those of a process that
 * hangs, or whose machine or network was lost, would last until the server finds the connection dead, by default after two hours.
 */
const IDLE_MS = 5_000;
/** Kysely's start of a transaction. Ours has settings, because poolers refuse or ignore those of the connection. */
const BEGIN = "begin";
const CLOSING_MS = 2_000;
/** PostgreSQL types parsed as numbers: bigint and numeric. As texts they would be concatenated instead of added. */
const AS_NUMBERS: ReadonlySet<number> = new Set([pg.types.builtins.INT8, pg.types.builtins.NUMERIC]);

export interface PostgresOptions {
  readonly url: string;
  /** Limit for a statement; undefined for none. */
  readonly limitMs: number | undefined;
}

export interface PoolOptions extends PostgresOptions {
  /** Largest number of connections. */
  readonly connections: number;
  /**
   * Whether each statement outside of a transaction gets one for its limit where a pooler ignores that of the connection: the server would
   * run a long report on after it was given up. Default: no, because short statements would take three round trips.
   */
  readonly limitsEach?: boolean | undefined;
  /** Why no connection may be made yet; undefined when one may. */
  readonly closedBy?: (() => StoreError | undefined) | undefined;
}

/** Settings of every connection. */
export function toClientConfig({ url, limitMs }: PostgresOptions): pg.ClientConfig {
  return {
    connectionString: url,
    application_name: "parley",
    connectionTimeoutMillis: CONNECT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    types: NUMBER_TYPES,
    ...(limitMs !== undefined && { query_timeout: limitMs, statement_timeout: limitMs * STATEMENT_SHARE }),
  };
}

/** Closes a connection's socket without notifying the server, which may be hung. */
export function dropClient(client: pg.ClientBase): void {
  (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
}

/**
 * Connection pool for Kysely that drops a connection as soon as it fails to answer: pg would keep it, and the next query
 * would wait behind the hung one. Rejects with a StoreError when the server is unavailable.
 */
export class PostgresConnections implements PostgresPool {
  /** Kysely would use them to cancel statements; here statements have time limits. */
  readonly options = {};
  readonly #pool: pg.Pool;
  readonly #where: string;
  readonly #hosts: HostChoice;
  readonly #clients = new Set<pg.PoolClient>();
  readonly #closedBy: NonNullable<PoolOptions["closedBy"]>;
  readonly #begin: string;
  /** Of the server for each statement; undefined for none, and where statements get none of their own. */
  readonly #limitMs: number | undefined;
  /** Whether the server has the limit of a connection. */
  readonly #hasLimit = new WeakMap<pg.PoolClient, boolean>();
  #isUp = true;

  constructor({ connections, limitsEach = false, closedBy = () => undefined, ...options }: PoolOptions) {
    this.#closedBy = closedBy;
    const { limitMs } = options;
    this.#begin = limitMs === undefined ? BEGIN : beginWithin(limitMs * STATEMENT_SHARE);
    this.#limitMs = limitsEach && limitMs !== undefined ? limitMs * STATEMENT_SHARE : undefined;
    this.#where = describePostgresUrl(options.url);
    const hosts = new HostChoice(options.url);
    this.#hosts = hosts;
    const Client = class extends pg.Client {
      constructor() {
        super(toClientConfig({ ...options, url: hosts.url }));
      }
    };
    const verify = hosts.writableOnly ? requireWritable : undefined;
    // `verify` is an option of pg-pool that its types do not have.
    const how: pg.PoolConfig & { verify?: typeof requireWritable } = {
      Client,
      max: connections,
      ...(verify && { verify }),
    };
    this.#pool = new pg.Pool({ ...how, connectionTimeoutMillis: CONNECT_MS });
    // An idle connection that breaks is replaced on demand.
    this.#pool.on("error", () => undefined);
    this.#pool.on("connect", (client) => {
      this.#clients.add(client);
      // The pool does not listen while a connection is in use; without a listener, an error would end the process.
      client.on("error", () => undefined);
    });
    this.#pool.on("remove", (client) => void this.#clients.delete(client));
  }

  /** Whether the last statement reached the server. */
  get isUp(): boolean {
    return this.#isUp && this.#closedBy() === undefined;
  }

  /** Changes the largest number of connections. Surplus ones are closed when they have been idle for ten seconds. */
  resize(connections: number): void {
    this.#pool.options.max = connections;
  }

  async connect(): Promise<PostgresPoolClient> {
    const closedBy = this.#closedBy();
    if (closedBy !== undefined) throw closedBy;
    for (let tries = 1; ; tries++) {
      const { url } = this.#hosts;
      try {
        return this.#lend(await this.#pool.connect());
      } catch (error) {
        const isFull = (error as Error).message === POOL_FULL;
        // A full pool says nothing of its host, unless connections to that have failed meanwhile.
        if (!isFull) this.#hosts.passOver(url);
        if (tries < this.#hosts.count && this.#hosts.url !== url) continue;
        if (!isFull) this.#isUp = false;
        throw toStoreError(this.#where, error);
      }
    }
  }

  async end(): Promise<void> {
    const timer = setTimeout(() => {
      for (const client of this.#clients) dropClient(client);
    }, CLOSING_MS);
    await this.#pool.end();
    // Connections to a server that does not answer must not keep the process alive.
    timer.unref();
  }

  #lend(client: pg.PoolClient): PostgresPoolClient {
    let lost: Error | undefined;
    let isInTransaction = false;
    const send = async (sql: string, parameters: readonly unknown[]): Promise<unknown> => {
      if (sql === BEGIN) isInTransaction = true;
      else if (sql === "commit" || sql === "rollback") isInTransaction = false;
      else if (!isInTransaction && !(await this.#isLimited(client))) return this.#queryWithin(client, sql, parameters);
      return client.query(sql === BEGIN ? this.#begin : sql, [...parameters]);
    };
    const query = async (sql: string, parameters: readonly unknown[]): Promise<unknown> => {
      // The rollback of a transaction whose connection is lost.
      if (lost !== undefined) throw lost;
      try {
        const result = await send(sql, parameters);
        this.#isUp = true;
        return result;
      } catch (error) {
        // As `TimeLimitError`, and still PostgreSQL's error with its code.
        if (isTooLong(error)) throw Object.assign(error, { isTimeLimit: true });
        if (!isConnectionError(error)) throw error;
        this.#isUp = false;
        lost = toStoreError(this.#where, error);
        dropClient(client);
        throw lost;
      }
    };
    const release = (destroy?: boolean): void => client.release(destroy === true || lost !== undefined);
    return { query, release } as unknown as PostgresPoolClient;
  }

  /** Whether a statement outside of a transaction has the limit that it should have. */
  async #isLimited(client: pg.PoolClient): Promise<boolean> {
    if (this.#limitMs === undefined) return true;
    const known = this.#hasLimit.get(client);
    if (known !== undefined) return known;
    const { rows } = await client.query<{ setting: string }>(READ_LIMIT);
    const hasLimit = Number(rows[0]?.setting) === this.#limitMs;
    this.#hasLimit.set(client, hasLimit);
    return hasLimit;
  }

  async #queryWithin(client: pg.PoolClient, sql: string, parameters: readonly unknown[]): Promise<unknown> {
    await client.query(this.#begin);
    try {
      const result = await client.query(sql, [...parameters]);
      await client.query("commit");
      return result;
    } catch (error) {
      if (!isConnectionError(error)) await client.query("rollback");
      throw error;
    }
  }
}

/** The beginning of a transaction with the limit of its statements. */
function beginWithin(statementMs: number): string {
  return `begin; set local idle_in_transaction_session_timeout = ${IDLE_MS}; set local statement_timeout = ${statementMs}`;
}

/** The limit of statements in milliseconds. */
const READ_LIMIT = "select setting from pg_settings where name = 'statement_timeout'";

/**
 * Parses counts, sums and bigints as numbers: the values stay far below 2^53. Does not change the driver's global parsers.
 */
const NUMBER_TYPES: pg.CustomTypesConfig = {
  getTypeParser(oid: number, format?: "text" | "binary") {
    return AS_NUMBERS.has(oid) ? Number : (pg.types.getTypeParser(oid, format) as unknown);
  },
};

/** Fails for a connection to a standby, or to a server that is set to refuse writes. */
function requireWritable(client: pg.Client, done: (error?: Error) => void): void {
  client.query<{ transaction_read_only: string }>("show transaction_read_only", (error, answer) => {
    const isReadOnly = !error && answer.rows[0]?.transaction_read_only === "on";
    done(isReadOnly ? new Error(READ_ONLY) : error);
  });
}

/** Describes the address without secrets: `PostgreSQL at host:5432/parley`. Throws a StoreError for an invalid one. */
export function describePostgresUrl(text: string): string {
  const urls = parseHosts(text).urls.map((url) => new URL(url));
  const hosts = urls.map(({ hostname, port }) => `${hostname || "localhost"}:${port || "5432"}`);
  return `PostgreSQL at ${hosts.join(", ")}${urls[0]!.pathname}`;
}
