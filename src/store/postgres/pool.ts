import type { PostgresPool, PostgresPoolClient } from "kysely";
import pg from "pg";
import { isConnectionError, toStoreError } from "./errors.ts";
import { describePostgresUrl } from "./url.ts";

const CONNECT_MS = 2_000;
/** A little sooner than our own limit, so that a slow statement costs no connection: that is for servers that hang. */
const STATEMENT_MS = 1_800;
const QUERY_MS = 2_000;
const CLOSING_MS = 2_000;
/** Of the types bigint and numeric: as texts they would be added up as texts. */
const AS_NUMBERS: ReadonlySet<number> = new Set([pg.types.builtins.INT8, pg.types.builtins.NUMERIC]);

export interface PostgresOptions {
  readonly url: string;
  /** False where statements may take as long as they need. */
  readonly limited: boolean;
}

export interface PoolOptions extends PostgresOptions {
  /** How many connections there are at most. */
  readonly connections: number;
}

/** How every connection of ours is made. */
export function toClientConfig({ url, limited }: PostgresOptions): pg.ClientConfig {
  return {
    connectionString: url,
    application_name: "parley",
    connectionTimeoutMillis: CONNECT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    types: NUMBER_TYPES,
    ...(limited && { query_timeout: QUERY_MS, statement_timeout: STATEMENT_MS }),
  };
}

/** Ends a connection without a word to the server, which may be hanging. */
export function dropClient(client: pg.ClientBase): void {
  (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
}

/**
 * Connections for Kysely, each given up as soon as it has not answered: pg would keep it, and the next query would wait
 * behind the one that hangs. Rejects with a StoreError when the server cannot be asked.
 */
export class PostgresConnections implements PostgresPool {
  /** Kysely would use them to cancel statements: ours end by themselves. */
  readonly options = {};
  readonly #pool: pg.Pool;
  readonly #where: string;
  readonly #clients = new Set<pg.PoolClient>();
  #isUp = true;

  constructor({ connections, ...options }: PoolOptions) {
    this.#where = describePostgresUrl(options.url);
    this.#pool = new pg.Pool({ ...toClientConfig(options), max: connections });
    // A connection that breaks while nobody uses it is replaced when somebody needs one.
    this.#pool.on("error", () => undefined);
    this.#pool.on("connect", (client) => {
      this.#clients.add(client);
      // While somebody has it, between two statements, the pool does not listen: unheard it would end the process.
      client.on("error", () => undefined);
    });
    this.#pool.on("remove", (client) => void this.#clients.delete(client));
  }

  /** Whether the last statement reached the server. */
  get isUp(): boolean {
    return this.#isUp;
  }

  async connect(): Promise<PostgresPoolClient> {
    try {
      return this.#lend(await this.#pool.connect());
    } catch (error) {
      this.#isUp = false;
      throw toStoreError(this.#where, error);
    }
  }

  async end(): Promise<void> {
    const timer = setTimeout(() => {
      for (const client of this.#clients) dropClient(client);
    }, CLOSING_MS);
    await this.#pool.end();
    // Those that were told to end, by a server that does not answer, would keep the process.
    timer.unref();
  }

  #lend(client: pg.PoolClient): PostgresPoolClient {
    let lost: Error | undefined;
    const query = async (sql: string, parameters: readonly unknown[]): Promise<unknown> => {
      // The rollback of a transaction whose connection has gone.
      if (lost !== undefined) throw lost;
      try {
        const result = await client.query(sql, [...parameters]);
        this.#isUp = true;
        return result;
      } catch (error) {
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

/** Counts, sums and bigints as numbers: ours stay far below 2^53. Without a say in what the driver does elsewhere. */
const NUMBER_TYPES: pg.CustomTypesConfig = {
  getTypeParser(oid: number, format?: "text" | "binary") {
    return AS_NUMBERS.has(oid) ? Number : (pg.types.getTypeParser(oid, format) as unknown);
  },
};
