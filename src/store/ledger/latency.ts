import { type RawBuilder, sql } from "kysely";
import { startOfDay, UTC } from "../../ledger/time-zone.ts";
import type { LatencyPoint, LatencyQuery, Percentiles, UsageStore } from "../../ledger/usage-store.ts";
import type { Database } from "../database.ts";
import { SHARES } from "../sqlite/percentiles.ts";
import { retryWhileBusy } from "../store-error.ts";
import { attributedTo } from "./attribution-filter.ts";
import { stepOf } from "./steps.ts";

/** Completions read per report, so that it takes no longer than a user waits for a page. */
const MAX_COMPLETIONS = 50_000;

/** Reads the latency of the latest completions. */
export function createLatency(reports: Database): UsageStore["latency"] {
  return async (query) => {
    const { rows } = await retryWhileBusy(() => latencyPoints(reports, query).execute(reports.query));
    const points = rows.map((row) => toPoint(row, query));
    return {
      overall: points.find(({ stepMs }) => stepMs === undefined),
      points: points.filter(({ stepMs }) => stepMs !== undefined),
      sinceMs: rows.find(({ step_ms }) => step_ms === null)?.since_ms,
    };
  };
}

interface PointRow {
  /** Start of the step, of days their number; null for the whole span. */
  readonly step_ms: number | null;
  readonly since_ms: number;
  readonly served: number;
  readonly duration: string;
  readonly first_content: string | null;
}

function toPoint(
  { step_ms, served, duration, first_content }: PointRow,
  { step, offsets = UTC }: LatencyQuery,
): LatencyPoint {
  const stepMs = step_ms === null || step !== "day" ? step_ms : startOfDay(step_ms, offsets);
  return {
    stepMs: stepMs ?? undefined,
    served,
    durationMs: readPercentiles(duration)!,
    firstContentMs: readPercentiles(first_content),
  };
}

/** Query with one row for each step and one for the whole span. */
export function latencyPoints(database: Database, { step, offsets, ...filter }: LatencyQuery): RawBuilder<PointRow> {
  const measures = sql`min(ended_at_ms) as since_ms, count(*) as served,
    ${percentilesOf(database, "duration_ms")} as duration, ${percentilesOf(database, "first_content_ms")} as first_content`;
  const points = [sql`select null as step_ms, ${measures} from served having count(*) > 0`];
  if (step !== "all") {
    const stepMs = stepOf("ended_at_ms", step, offsets);
    points.unshift(sql`select ${stepMs} as step_ms, ${measures} from served group by 1`);
  }
  return sql<PointRow>`
    with newest as (${newest(filter)}),
    served as materialized (
      select ended_at_ms, duration_ms, first_content_ms from newest where outcome = 'served' and ${matching(database, filter)})
    ${sql.join(points, sql` union all `)} order by 1`;
}

/** Reads the latest completions by an index: at most MAX_COMPLETIONS rows, however few of them match the other filters. */
function newest({
  sinceMs,
  untilMs,
  accountId,
  keyId,
}: LatencyQuery | Omit<LatencyQuery, "step">): RawBuilder<unknown> {
  const owner =
    keyId !== undefined
      ? sql`key_id = ${keyId} and`
      : accountId !== undefined
        ? sql`account_id = ${accountId} and`
        : sql``;
  return sql`select account_id, end_user, session, agent, tags, served_model, requested_model, outcome, ended_at_ms, duration_ms, first_content_ms
    from completions where ${owner} ended_at_ms >= ${sinceMs} and ended_at_ms < ${untilMs}
    order by ended_at_ms desc limit ${sql.lit(MAX_COMPLETIONS)}`;
}

function matching(database: Pick<Database, "kind">, query: Omit<LatencyQuery, "step">): RawBuilder<unknown> {
  const { accountId, model, outcome = "served" } = query;
  const conditions: RawBuilder<unknown>[] = [sql`${outcome} = 'served'`, ...attributedTo(database, query)];
  if (accountId !== undefined) conditions.push(sql`account_id = ${accountId}`);
  if (model !== undefined) conditions.push(sql`coalesce(served_model, requested_model) = ${model}`);
  return sql.join(conditions, sql` and `);
}

/**
 * The percentiles of a column (nearest rank) as JSON text for `readPercentiles`; null without values. PostgreSQL has a
 * function for it. Window functions, which both databases have, would take SQLite three times as long as its function
 * `percentiles`.
 */
function percentilesOf({ kind }: Pick<Database, "kind">, column: string): RawBuilder<string | null> {
  if (kind === "sqlite") return sql`percentiles(${sql.ref(column)})`;
  const shares = sql.join(Object.values(SHARES).map((share) => sql.lit(share)));
  return sql`array_to_json(percentile_disc(array[${shares}]) within group (order by ${sql.ref(column)}))::text`;
}

/** Parses the text of `percentilesOf`. */
function readPercentiles(text: string | null): Percentiles | undefined {
  if (text === null) return undefined;
  const [p50, p95, p99] = JSON.parse(text) as [number, number, number];
  return { p50, p95, p99 };
}
