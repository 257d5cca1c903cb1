import { type RawBuilder, sql } from "kysely";
import { type Span, STEP_MS, type UsageQuery } from "../../ledger/usage-store.ts";
import type { Database } from "../database.ts";
import { compare } from "../limits/spending.ts";
import type { UsageLeaderRow } from "../schema.ts";
import { retryWhileBusy } from "../store-error.ts";
import { TEAMS } from "./entry-sums.ts";
import type { LedgerPlaces } from "./ledger-store.ts";
import { ALL } from "./usage-hours.ts";
import { groupOf } from "./usage-sums.ts";

/*
 * The keys and accounts of the largest cost of each day, its leaders. A report of hundreds of thousands of keys reads the
 * sums of those that have led some day of its time only. Leaders decide which keys have a row in such a report, never its
 * figures, so they may be some minutes old.
 */

/** Leaders of a day, by cost and then by completions. */
const LEADERS = 500;

/** A day is ranked again when its completions or its cost differ from those it was ranked with by more than this share. */
const CHANGE = 0.01;

/** Keys or accounts that were leaders in the days of a report, by their sums as leaders; empty where no day was ranked. */
export async function findLeaders({ query }: Database, report: UsageQuery, count: number): Promise<readonly string[]> {
  const found = sql<{ id: string }>`
    ${allLeaders(report)} order by sum(cost_micro_usd) desc, sum(completions) desc limit ${sql.lit(count)}`;
  return (await retryWhileBusy(() => found.execute(query))).rows.map(({ id }) => id);
}

/** Query of the IDs of all leaders in the days of a report; teams are accounts. */
export function allLeaders({ by, sinceMs, untilMs }: UsageQuery): RawBuilder<string> {
  const [kind, among] = by === "team" ? ["account", sql`and id in (${TEAMS})`] : [by, sql``];
  return sql<string>`
    select id from usage_leaders where kind = ${kind} ${among} and day_ms >= ${dayOf(sinceMs)} and day_ms < ${untilMs} group by id`;
}

/** Databases of a ranking. */
export interface RankingPlaces extends Pick<LedgerPlaces, "database" | "reports"> {
  /** Connects for statements that add up all rows of a day, which may take longer than those of reports. */
  readonly connectRanking: () => Promise<Database>;
}

/**
 * Ranks the changed days that this time touches, and returns their number. Stops when the signal aborts. The first error is thrown
 * after all days, so that one day which cannot be ranked does not keep the others from it.
 */
export async function rankDays(
  { database, reports, connectRanking }: RankingPlaces,
  span: Span,
  signal: AbortSignal,
): Promise<number> {
  const changed = await findChanged({ database, reports }, span);
  if (changed.length === 0 || signal.aborted) return 0;
  const ranking = await connectRanking();
  // Ends the running statement, for which the end of the process would wait.
  const stop = (): void => void ranking.close();
  signal.addEventListener("abort", stop);
  const errors: unknown[] = [];
  let count = 0;
  for (const total of changed) {
    if (signal.aborted) break;
    try {
      await rankDay({ database, ranking }, total);
      count += 1;
    } catch (error) {
      errors.push(error);
    }
  }
  signal.removeEventListener("abort", stop);
  await ranking.close();
  if (errors.length > 0 && !signal.aborted) throw errors[0];
  return count;
}

/** Sums of all accounts on the days that have changed since they were ranked. */
async function findChanged(
  { database, reports }: Pick<RankingPlaces, "database" | "reports">,
  { sinceMs, untilMs }: Span,
): Promise<readonly UsageLeaderRow[]> {
  // Whole days: a part of a day would be ranked as a whole one.
  const days = { sinceMs: dayOf(sinceMs), untilMs: dayOf(untilMs - 1) + STEP_MS.day };
  const [totals, ranked] = await Promise.all([readTotals(reports, days), readRanked(database, days)]);
  return totals.filter((total) => hasChanged(total, ranked.get(total.day_ms)));
}

async function rankDay(
  { database, ranking }: { readonly database: Database; readonly ranking: Database },
  total: UsageLeaderRow,
): Promise<void> {
  const leaders = [...(await readLeaders(ranking, total.day_ms, "key"))];
  leaders.push(...(await readLeaders(ranking, total.day_ms, "account")));
  // One order in all processes, so that they do not wait for each other in a circle.
  const sorted = leaders.toSorted((a, b) => compare(a.kind, b.kind) || compare(a.id, b.id));
  await database.perform("writeLeaders", { dayMs: total.day_ms, rows: [total, ...sorted] });
}

/** Removes the leaders of days before a time. */
export async function pruneLeaders({ query }: Database, beforeMs: number): Promise<void> {
  await retryWhileBusy(() => query.deleteFrom("usage_leaders").where("day_ms", "<", beforeMs).execute());
}

function dayOf(timeMs: number): number {
  return Math.floor(timeMs / STEP_MS.day) * STEP_MS.day;
}

/** Sums of all accounts on each day; days without completions are missing. */
async function readTotals({ query }: Database, { sinceMs, untilMs }: Span): Promise<readonly UsageLeaderRow[]> {
  const found = sql<UsageLeaderRow>`
    select hour_ms / ${sql.lit(STEP_MS.day)} * ${sql.lit(STEP_MS.day)} as day_ms, 'all' as kind, '' as id,
      sum(cost_micro_usd) as cost_micro_usd, sum(completions) as completions
    from usage_hours where account_id = ${ALL} and hour_ms >= ${sinceMs} and hour_ms < ${untilMs} group by 1`;
  return (await retryWhileBusy(() => found.execute(query))).rows;
}

/** Sums of all accounts at the time when each day was ranked, by day. */
async function readRanked({ query }: Database, { sinceMs, untilMs }: Span) {
  const rows = query
    .selectFrom("usage_leaders")
    .selectAll()
    .where("kind", "=", "all")
    .where("day_ms", ">=", sinceMs)
    .where("day_ms", "<", untilMs);
  return new Map((await retryWhileBusy(() => rows.execute())).map((row) => [row.day_ms, row]));
}

function hasChanged(now: UsageLeaderRow, ranked: UsageLeaderRow | undefined): boolean {
  if (ranked === undefined) return true;
  return (["completions", "cost_micro_usd"] as const).some(
    (sum) => Math.abs(now[sum] - ranked[sum]) > CHANGE * now[sum],
  );
}

async function readLeaders(
  { query }: Database,
  dayMs: number,
  kind: "key" | "account",
): Promise<readonly UsageLeaderRow[]> {
  const found = sql<UsageLeaderRow>`
    select cast(${dayMs} as bigint) as day_ms, ${sql.lit(kind)} as kind, ${groupOf(kind)} as id,
      sum(cost_micro_usd) as cost_micro_usd, sum(completions) as completions
    from usage_hours where account_id <> ${ALL} and hour_ms >= ${dayMs} and hour_ms < ${dayMs + STEP_MS.day}
    group by 3 order by 4 desc, 5 desc limit ${sql.lit(LEADERS)}`;
  return (await retryWhileBusy(() => found.execute(query))).rows;
}
