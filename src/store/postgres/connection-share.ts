import { sql } from "kysely";
import { PROCESS_LEASE_MS } from "../../ledger/ledger-store.ts";
import type { Database } from "../database.ts";

/** Connections of a process: at least one each for completions with a second one, reports and LISTEN, and at most what helps. */
const FEWEST = 4;
export const MOST_CONNECTIONS = 14;
/** Share of the server's connections for all processes; the rest is for people, backups and restarts of processes. */
const USABLE = 0.9;

/** How the connections of a PostgreSQL server are shared by the processes of Parley. */
export interface ConnectionShare {
  /** Processes with a lease. */
  readonly processes: number;
  /** The server's `max_connections` without those that it reserves. */
  readonly limit: number;
  /** Largest number of connections of each process. */
  readonly each: number;
  /** Whether the sum of all is within nine tenths of the limit. */
  readonly isEnough: boolean;
}

/** The share of each process; `wanted` is a number by configuration. */
export function shareConnections({
  processes,
  limit,
  wanted,
}: {
  readonly processes: number;
  readonly limit: number;
  readonly wanted: number | undefined;
}): ConnectionShare {
  const usable = Math.floor(limit * USABLE);
  const each = wanted ?? Math.min(Math.max(Math.floor(usable / processes), FEWEST), MOST_CONNECTIONS);
  return { processes, limit, each, isEnough: each * processes <= usable };
}

/** Sizes of a process's pools: one connection is for LISTEN. */
export function poolSizes(each: number): { readonly usual: number; readonly reports: number } {
  const reports = Math.min(Math.max(Math.floor((each - 1) / 4), 1), 3);
  return { usual: each - 1 - reports, reports };
}

/** Asks the server for its limit and for the processes that share it. */
export async function readShare(database: Database, wanted: number | undefined): Promise<ConnectionShare> {
  const sinceMs = (await database.nowMs(database.query)) - PROCESS_LEASE_MS;
  const { rows } = await sql<{ limit: number; processes: number }>`
    select (select count(*) from replicas where seen_at_ms >= ${sinceMs}) as processes,
      sum(case when name = 'max_connections' then setting::int else -setting::int end) as limit
    from pg_settings where name in ('max_connections', 'superuser_reserved_connections', 'reserved_connections')`.execute(
    database.query,
  );
  const { limit, processes } = rows[0]!;
  return shareConnections({ processes: Math.max(processes, 1), limit, wanted });
}
