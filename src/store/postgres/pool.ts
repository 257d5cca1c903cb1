import type { PostgresPool, PostgresPoolClient } from "kysely";
import pg from "pg";
import { StoreError, UnreachableError } from "../store-error.ts";
import { HostChoice, parseHosts } from "./host-choice.ts";

const CONNECT_MS = 2_000;
/** Limit for a statement, unless it is given another one. */
export const QUERY_MS = 2_000;
/**
 * The server's part of the limit: shorter, so that a slow statement fails without losing its connection. The whole is for hung
 * servers.
 */
const STATEMENT_SHARE = 0.9;
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
  #isUp = true;

  constructor({ connections, closedBy = () => undefined, ...options }: PoolOptions) {
    this.#closedBy = closedBy;
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
    const query = async (sql: string, parameters: readonly unknown[]): Promise<unknown> => {
      // The rollback of a transaction whose connection is lost.
      if (lost !== undefined) throw lost;
      try {
        const result = await client.query(sql, [...parameters]);
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
}

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

const READ_ONLY = "it takes no writes: it is a standby, or set to be read-only";

/** Describes the address without secrets: `PostgreSQL at host:5432/parley`. Throws a StoreError for an invalid one. */
export function describePostgresUrl(text: string): string {
  const urls = parseHosts(text).urls.map((url) => new URL(url));
  const hosts = urls.map(({ hostname, port }) => `${hostname || "localhost"}:${port || "5432"}`);
  return `PostgreSQL at ${hosts.join(", ")}${urls[0]!.pathname}`;
}

const UNTRUSTED =
  "its certificate is not of a trusted authority; name the file of that authority in database.url: &sslrootcert=FILE";

/** Reasons and remedies for an operator, by SQLSTATE or system error code. */
const REMEDIES: Readonly<Record<string, string>> = {
  "28P01": "it does not take our password; correct database.url",
  "28000": "it refuses this user or host; check its pg_hba.conf and database.url",
  "3D000": "there is no database of this name; create it, or correct database.url",
  "42501": "this user may not do that; grant it the right to create tables in the schema",
  "53300": "it has no connection left; raise its max_connections, or run fewer replicas",
  "57P03": "it is starting or stopping",
  ECONNREFUSED: "nothing listens there",
  ECONNRESET: "it has closed the connection",
  ENOTFOUND: "this host name does not exist",
  EAI_AGAIN: "the host's name cannot be looked up at the moment",
  ETIMEDOUT: "it cannot be reached",
  SELF_SIGNED_CERT_IN_CHAIN: UNTRUSTED,
  DEPTH_ZERO_SELF_SIGNED_CERT: UNTRUSTED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNTRUSTED,
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another name than that in database.url",
  CERT_HAS_EXPIRED: "its certificate has expired",
  ENOENT: "a file that database.url names (sslrootcert, sslcert, sslkey) does not exist",
  "25006": READ_ONLY,
  "57014": "a statement took too long",
  "55P03": "a lock is held for too long",
};

/** Message of pg-pool when no connection becomes free within CONNECT_MS; it has no code. */
const POOL_FULL = "timeout exceeded when trying to connect";

/** Messages of the driver's own time limits, which have no code. */
const DRIVER_TIMEOUTS: ReadonlySet<string> = new Set([
  "Query read timeout",
  "timeout expired",
  "Connection terminated due to connection timeout",
]);
/** SQLSTATE of a protocol violation; a pooler uses it for a startup setting that it does not support. */
const PROTOCOL_VIOLATION = "08P01";
const POOLER =
  "a pooler such as PgBouncer refuses our settings; set its ignore_startup_parameters = statement_timeout and its pool_mode = session";

const CONNECTION_CLASS = "08";
/** SQLSTATE classes after which a connection is useless: connection, server resources, operator intervention. */
const LOST_CLASSES = new Set([CONNECTION_CLASS, "53", "57"]);
const STATEMENT_TOO_LONG = "57014";
/** The server was a primary when the connection was made, and is none now. */
const READ_ONLY_TRANSACTION = "25006";

/**
 * Errors that pass by themselves: the server is down, starts, is slow or full, or has become a standby, or the network to it
 * is down.
 */
const PASSING: ReadonlySet<string> = new Set([
  STATEMENT_TOO_LONG,
  "53300",
  "57P01",
  "57P02",
  "57P03",
  READ_ONLY_TRANSACTION,
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "ENOTFOUND",
  "EAI_AGAIN",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENETDOWN",
]);
const PASSING_MESSAGES: ReadonlySet<string> = new Set([
  ...DRIVER_TIMEOUTS,
  POOL_FULL,
  READ_ONLY,
  "Connection terminated unexpectedly",
]);

function isTooLong(error: unknown): error is Error {
  return error instanceof Error && (error as { code?: unknown }).code === STATEMENT_TOO_LONG;
}

/** Whether the connection, rather than the statement, has failed. */
function isConnectionError(error: unknown): boolean {
  const { code } = (error ?? {}) as { code?: unknown };
  // The driver's own errors, such as time limits, have no code; system errors have names, not five characters.
  if (typeof code !== "string" || code.length !== 5) return true;
  return (code !== STATEMENT_TOO_LONG && LOST_CLASSES.has(code.slice(0, 2))) || code === READ_ONLY_TRANSACTION;
}

/** Converts an error into one with a message for the operator. PostgreSQL's messages hold no password. */
function toStoreError(where: string, error: unknown): StoreError {
  if (error instanceof StoreError) return error;
  return new (isPassing(error) ? UnreachableError : StoreError)(`${where}: ${reason(error)}.`, { cause: error });
}

/** Whether the failure passes by itself, without a change of the configuration. */
export function isPassing(error: unknown): boolean {
  const { code, message } = (error ?? {}) as { code?: string; message?: string };
  if (code === undefined) return PASSING_MESSAGES.has(message ?? "");
  // Poolers answer with codes of this class while their server is down.
  if (code.startsWith(CONNECTION_CLASS)) return !refusesSettings(error);
  return PASSING.has(code);
}

function refusesSettings(error: unknown): boolean {
  const { code, message } = (error ?? {}) as { code?: string; message?: string };
  return code === PROTOCOL_VIOLATION && message?.includes("startup parameter") === true;
}

function reason(error: unknown): string {
  const { code, message } = (error ?? {}) as { code?: string; message?: string };
  const remedy = REMEDIES[code ?? ""];
  if (remedy !== undefined) return remedy;
  if (refusesSettings(error)) return `${POOLER} (${message})`;
  if (message === POOL_FULL) return "all connections to it are in use by statements that take long";
  if (code === undefined && DRIVER_TIMEOUTS.has(message ?? "")) return "it does not answer in time";
  return message || code || "unknown reason";
}
