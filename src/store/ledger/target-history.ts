import { type RawBuilder, sql } from "kysely";
import {
  type AttemptCount,
  type HistoryQuery,
  type KnownReplica,
  type ReplicaState,
  STATE_LASTS_MS,
  type StepLatencies,
  type TargetHistoryStore,
} from "../../ledger/target-history.ts";
import { startOfDay } from "../../ledger/time-zone.ts";
import { STEP_MS } from "../../ledger/usage-store.ts";
import type { Database } from "../database.ts";
import { retryWhileBusy } from "../store-error.ts";
import { HALF_HOUR_MS, LATENCY_COLUMNS, type LatencyCounts, toLatencies } from "./latency-columns.ts";
import { stepOf } from "./steps.ts";

/** Counts removed per transaction: other transactions wait meanwhile. */
const PRUNE_ROWS = 1_000;

/** The TargetHistoryStore in the database. */
export function createTargetHistory({
  database,
  reports,
}: {
  readonly database: Database;
  readonly reports: Database;
}): TargetHistoryStore {
  return {
    write: (counts, state) => database.perform("writeTargets", { counts, state }),

    async forget(replica) {
      const row = database.query.deleteFrom("replica_states").where("name", "=", replica);
      await retryWhileBusy(() => row.execute());
    },

    async read(query) {
      if (query.targets.length === 0) return [];
      const { rows } = await retryWhileBusy(() => countsOf(query).execute(reports.query));
      if (query.step !== "day") return rows;
      return rows.map((row) => ({ ...row, atMs: startOfDay(row.atMs, query.offsets) }));
    },

    async readLatencies(query) {
      if (query.targets.length === 0) return [];
      const { rows } = await retryWhileBusy(() => latenciesOf(query).execute(reports.query));
      return rows.map(({ atMs, target, ...counts }) => ({
        atMs: query.step === "day" ? startOfDay(atMs, query.offsets) : atMs,
        target,
        ...toLatencies(counts),
      }));
    },

    async replicas() {
      const known = database.query
        .selectFrom("replica_states")
        .select(["state", "written_at_ms"])
        .where("written_at_ms", ">=", (await database.nowMs(database.query)) - STATE_LASTS_MS);
      const rows = await retryWhileBusy(() => known.execute());
      return rows
        .map(({ state, written_at_ms: seenMs }): KnownReplica => ({ ...(JSON.parse(state) as ReplicaState), seenMs }))
        .toSorted((one, other) => one.host.localeCompare(other.host) || one.worker - other.worker);
    },

    async prune(grain, beforeMs) {
      const attempts = sql`delete from target_attempts where (step_ms, target, start_ms, outcome) in (
        select step_ms, target, start_ms, outcome from target_attempts
        where step_ms = ${sql.lit(STEP_MS[grain])} and start_ms < ${beforeMs}
        order by start_ms limit ${sql.lit(PRUNE_ROWS)})`;
      const latencies = sql`delete from target_latencies where (target, start_ms) in (
        select target, start_ms from target_latencies where start_ms < ${beforeMs}
        order by start_ms limit ${sql.lit(PRUNE_ROWS)})`;
      let count = 0;
      for (const removed of grain === "hour" ? [attempts, latencies] : [attempts])
        count += Number((await retryWhileBusy(() => removed.execute(database.query))).numAffectedRows);
      return count;
    },
  };
}

function countsOf({ targets, sinceMs, step, offsets }: HistoryQuery): RawBuilder<AttemptCount> {
  const [grainMs, start] =
    step === "day"
      ? [STEP_MS.hour, stepOf("start_ms", "day", offsets)]
      : [STEP_MS.minute, sql<number>`start_ms / ${sql.lit(HALF_HOUR_MS)} * ${sql.lit(HALF_HOUR_MS)}`];
  return sql<AttemptCount>`
    select target, ${start} as "atMs", outcome, sum(attempts) as attempts from target_attempts
    where step_ms = ${sql.lit(grainMs)} and target in (${sql.join(targets)}) and start_ms >= ${sinceMs}
    group by 1, 2, 3 order by 1, 2, 3`;
}

function latenciesOf({
  targets,
  sinceMs,
  step,
  offsets,
}: HistoryQuery): RawBuilder<Pick<StepLatencies, "atMs" | "target"> & LatencyCounts> {
  const start = step === "day" ? stepOf("start_ms", "day", offsets) : sql.ref("start_ms");
  const sums = LATENCY_COLUMNS.map((column) => sql`sum(${sql.ref(column)}) as ${sql.ref(column)}`);
  return sql`
    select target, ${start} as "atMs", ${sql.join(sums)} from target_latencies
    where target in (${sql.join(targets)}) and start_ms >= ${sinceMs}
    group by 1, 2 order by 1, 2`;
}
