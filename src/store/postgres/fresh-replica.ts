import { type Kysely, type PostgresPool, type PostgresPoolClient, sql } from "kysely";
import type { Schema } from "../schema.ts";
import type { PostgresConnections } from "./pool.ts";

const CHECK_MS = 1_000;
/** How far a read replica may be behind. */
const MAX_LAG_MS = 5_000;

/** End of the primary's log at a time of this process. */
interface Mark {
  readonly monotonicMs: number;
  readonly position: number;
}

export interface FreshReplicaOptions {
  readonly replica: PostgresConnections;
  readonly primary: PostgresConnections;
  /** Runs a query on either. */
  readonly queryReplica: Kysely<Schema>;
  readonly queryPrimary: Kysely<Schema>;
}

/**
 * Pool for reports: connections to a read replica while it is known to have replayed all that the primary had written
 * MAX_LAG_MS ago, else to the primary. Positions of the log are compared, and no clocks: a replica that has lost its primary is
 * not taken for one without news.
 */
export class FreshReplica implements PostgresPool {
  /** Kysely would use them to cancel statements; here statements have time limits. */
  readonly options = {};
  readonly #options: FreshReplicaOptions;
  readonly #timer: NodeJS.Timeout;
  #marks: readonly Mark[] = [];
  /** The replica has all that was written until then. */
  #freshUntilMs = -Infinity;
  #isChecking = false;

  constructor(options: FreshReplicaOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.#check(), CHECK_MS).unref();
    void this.#check();
  }

  /** Whether reports are read from the replica. */
  get isFresh(): boolean {
    return performance.now() - this.#freshUntilMs <= MAX_LAG_MS;
  }

  async connect(): Promise<PostgresPoolClient> {
    if (this.isFresh) {
      try {
        return await this.#options.replica.connect();
      } catch {
        // Until the next check finds it again.
        this.#freshUntilMs = -Infinity;
      }
    }
    return this.#options.primary.connect();
  }

  async end(): Promise<void> {
    clearInterval(this.#timer);
    const { replica, primary } = this.#options;
    await Promise.all([replica.end(), primary.end()]);
  }

  resize(connections: number): void {
    this.#options.replica.resize(connections);
    this.#options.primary.resize(connections);
  }

  async #check(): Promise<void> {
    if (this.#isChecking) return;
    this.#isChecking = true;
    try {
      const monotonicMs = performance.now();
      const { queryPrimary, queryReplica } = this.#options;
      const written = await readPosition(queryPrimary, sql`pg_current_wal_lsn()`);
      const marks = [...this.#marks, { monotonicMs, position: written ?? Infinity }];
      this.#marks = marks.filter((mark) => monotonicMs - mark.monotonicMs <= MAX_LAG_MS);
      const replayed = await readPosition(queryReplica, sql`pg_last_wal_replay_lsn()`);
      if (replayed === undefined) return;
      for (const mark of this.#marks)
        if (mark.position <= replayed) this.#freshUntilMs = Math.max(this.#freshUntilMs, mark.monotonicMs);
    } catch {
      // The primary or the replica is unavailable, or no standby: it becomes too old by itself.
    } finally {
      this.#isChecking = false;
    }
  }
}

/** A position in the log, in bytes. Undefined for a server that replays none. */
async function readPosition(query: Kysely<Schema>, position: ReturnType<typeof sql>): Promise<number | undefined> {
  const found = sql<{ bytes: number | null }>`select pg_wal_lsn_diff(${position}, '0/0') as bytes`;
  return (await found.execute(query)).rows[0]?.bytes ?? undefined;
}
