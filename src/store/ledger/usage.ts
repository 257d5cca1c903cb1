import { type RawBuilder, sql } from "kysely";
import { startOfDay, UTC } from "../../ledger/time-zone.ts";
import {
  totalOf,
  type UsageGrain,
  type UsageQuery,
  type UsageRow,
  type UsageStore,
  type UsageSummary,
  type UsageSums,
} from "../../ledger/usage-store.ts";
import { type Database, inCodeUnits } from "../database.ts";
import { compare } from "../limits/spending.ts";
import { removeOld } from "../postgres/retention.ts";
import { chunksOf } from "../statements.ts";
import { retryWhileBusy } from "../store-error.ts";
import { readsEntries, sumEntries, TEAMS } from "./entry-sums.ts";
import { createLatency } from "./latency.ts";
import type { LedgerPlaces } from "./ledger-store.ts";
import { SUMS, USAGE_TABLES } from "./usage-hours.ts";
import { allLeaders, findLeaders, pruneLeaders, type RankingPlaces, rankDays } from "./usage-leaders.ts";
import { groupOf, type Groups, matching, readsEachKey, type Sums, sumsOf, tableOf } from "./usage-sums.ts";

/** Sums removed per transaction: other transactions wait meanwhile. */
const PRUNE_ROWS = 1_000;

/** Rows of all keys that a report adds up one by one, twice: for their order and for their sums. */
const EXACT_ROWS = 100_000;

/** Places of the reports, and `exactRows`, the rows of all keys that a report reads one by one. Default: 100,000. */
export interface UsagePlaces extends LedgerPlaces, RankingPlaces {
  readonly exactRows?: number | undefined;
}

/** Reports from the sums of hours and minutes and, for latency, from the latest entries. */
export function createUsageStore({
  database,
  reports,
  compaction,
  databaseUrl,
  connectRanking,
  exactRows = EXACT_ROWS,
}: UsagePlaces): UsageStore {
  const latency = createLatency(reports);
  const prune = async (grain: UsageGrain, beforeMs: number): Promise<number> => {
    await compaction.flushed();
    const { table, column } = USAGE_TABLES[grain];
    if (databaseUrl !== undefined)
      return removeOld(database, { databaseUrl, table, column, beforeMs, most: PRUNE_ROWS });
    const key = sql`${sql.ref(column)}, account_id, key_id, model, outcome`;
    const removed = sql`delete from ${sql.table(table)} where (${key}) in (
      select ${key} from ${sql.table(table)} where ${sql.ref(column)} < ${beforeMs}
      order by ${sql.ref(column)} limit ${sql.lit(PRUNE_ROWS)})`;
    return Number((await retryWhileBusy(() => removed.execute(database.query))).numAffectedRows);
  };
  return {
    async summarize(query) {
      await compaction.flushed();
      if (readsEntries(query)) return summarizeEntries(reports, query);
      const leaders = await findLeadersOfMany(reports, query, exactRows);
      const { shown, sums } =
        leaders.length === 0
          ? await readReport(reports, query, query.by === "team" ? TEAMS : undefined)
          : await readOfMany(reports, query, leaders);
      const rows = await toRows(reports, query, { shown, sums });
      return { rows, total: totalOf(rows), isChosenByDay: leaders.length > 0, cutSinceMs: undefined };
    },

    async rank(span, signal) {
      await compaction.flushed();
      return rankDays({ database, reports, connectRanking }, span, signal);
    },

    async latency(query) {
      await compaction.flushed();
      return latency(query);
    },

    async prune(beforeMs) {
      await pruneLeaders(database, beforeMs);
      return prune("hour", beforeMs);
    },

    pruneMinutes: (beforeMs) => prune("minute", beforeMs),
  };
}

/** The report of single completions. */
async function summarizeEntries(database: Database, query: UsageQuery): Promise<UsageSummary> {
  const { sums, total, cutSinceMs } = await sumEntries(database, query);
  const shown = largestOf(sums.filter(({ name }) => name !== ""));
  const rows = await toRows(database, query, { shown, sums });
  return { rows, total: total === undefined ? totalOf(rows) : toUsageSums(total), isChosenByDay: false, cutSinceMs };
}

/** Rows by step, then in the order of the groups. */
async function toRows(database: Database, query: UsageQuery, { shown, sums }: Report): Promise<UsageRow[]> {
  const names = await findNames(database, query, shown);
  const places = new Map(shown.map((group, place) => [group, place]));
  const placeOf = ({ name }: Sums): number => places.get(name) ?? places.size;
  return sums
    .toSorted((left, right) => left.step_ms - right.step_ms || placeOf(left) - placeOf(right))
    .map((row) => toUsageRow(row, { query, names }));
}

/** The groups with rows of their own, and the sums of each step and group. */
interface Report {
  readonly shown: readonly string[];
  readonly sums: readonly Sums[];
}

/** Leaders to choose the groups of a report from; empty for a report that can read the rows of all keys. */
async function findLeadersOfMany(database: Database, query: UsageQuery, exactRows: number): Promise<readonly string[]> {
  const { grain = "hour", maxGroups } = query;
  if (grain !== "hour" || maxGroups === undefined || !readsEachKey(query)) return [];
  const found = sql<{ count: number }>`
    select count(*) as count from (
      select 1 from ${tableOf(query)} where ${matching(query)} limit ${sql.lit(exactRows + 1)}) as found`;
  const [{ rows }, leaders] = await Promise.all([
    retryWhileBusy(() => found.execute(database.query)),
    // More than are shown, because their order as leaders is not the one of their sums.
    findLeaders(database, query, Math.ceil(1.2 * maxGroups) + 20),
  ]);
  return rows[0]!.count > exactRows ? leaders : [];
}

/**
 * The report whose groups are chosen among leaders: with a filter, among all groups, because leaders are ranked by their
 * costs without a filter.
 */
function readOfMany(database: Database, query: UsageQuery, leaders: readonly string[]): Promise<Report> {
  const isFiltered = query.model !== undefined || query.outcome !== undefined;
  return isFiltered ? readReport(database, query, allLeaders(query)) : readAmong(database, query, leaders);
}

/** The report by the sums of the leaders, and of all others together. */
async function readAmong(database: Database, query: UsageQuery, leaders: readonly string[]): Promise<Report> {
  const sums = await readSums(database, query, { shown: leaders, others: "none" });
  const shown = largestOf(sums).slice(0, query.maxGroups);
  const names = new Set(shown);
  const own = sums.filter(({ name }) => names.has(name));
  return { shown, sums: await addOthers(database, query, own) };
}

/** Groups by largest sum, in the order of `findGroups`. */
function largestOf(sums: readonly Sums[]): readonly string[] {
  const totals = [...Map.groupBy(sums, ({ name }) => name)].map(([name, own]) => ({
    name,
    cost: own.reduce((total, { cost_micro_usd }) => total + cost_micro_usd, 0),
    completions: own.reduce((total, { completions }) => total + completions, 0),
    refused: own.reduce((total, { refused }) => total + refused, 0),
  }));
  return totals
    .toSorted(
      (a, b) => b.cost - a.cost || b.completions - a.completions || b.refused - a.refused || compare(a.name, b.name),
    )
    .map(({ name }) => name);
}

/** The report of the largest groups of all, or of the candidates. */
async function readReport(database: Database, query: UsageQuery, candidates?: RawBuilder<string>): Promise<Report> {
  const { shown, hasOthers } = await findGroups(database, query, candidates);
  if (!hasOthers) return { shown, sums: await readSums(database, query, { shown }) };
  if (!readsEachKey(query)) return { shown, sums: await readSums(database, query, { shown, others: "sum" }) };
  const own = shown.length === 0 ? [] : await readSums(database, query, { shown, others: "none" });
  return { shown, sums: await addOthers(database, query, own) };
}

async function findGroups(
  database: Database,
  query: UsageQuery,
  candidates: RawBuilder<string> | undefined,
): Promise<{ readonly shown: readonly string[]; readonly hasOthers: boolean }> {
  const { by, maxGroups } = query;
  if (by === "none") return { shown: [""], hasOthers: false };
  const among = candidates === undefined ? sql`` : sql`and ${groupOf(by)} in (${candidates})`;
  const limit = maxGroups === undefined ? sql`` : sql`limit ${sql.lit(maxGroups + 1)}`;
  const found = sql<{ name: string }>`
    select name from (
      select ${groupOf(by)} as name, sum(cost_micro_usd) as cost, sum(completions) as completions, sum(refused) as refused
      from ${tableOf(query)} where ${matching(query)} ${among} group by 1) as totals
    order by cost desc, completions desc, refused desc, ${inCodeUnits(database, "name")} ${limit}`;
  const { rows } = await retryWhileBusy(() => found.execute(database.query));
  const shown = rows.map(({ name }) => name).slice(0, maxGroups);
  return { shown, hasOthers: candidates !== undefined || shown.length < rows.length };
}

async function readSums(database: Database, query: UsageQuery, groups: Groups): Promise<readonly Sums[]> {
  return (await retryWhileBusy(() => sumsOf(query, groups).execute(database.query))).rows;
}

/**
 * Adds the sums of all other keys or accounts: what is left of the sums of all accounts. These are read last, so that entries which
 * are written meanwhile make nothing negative.
 */
async function addOthers(database: Database, query: UsageQuery, own: readonly Sums[]): Promise<readonly Sums[]> {
  const totals = await readSums(database, { ...query, by: "none" }, { shown: [""] });
  const left = new Map(totals.map((row) => [row.step_ms, { ...row }]));
  for (const row of own) {
    const others = left.get(row.step_ms);
    if (others !== undefined) for (const sum of [...SUMS, "failed"] as const) others[sum] -= row[sum];
  }
  return [...own, ...[...left.values()].filter(({ completions, refused }) => completions + refused > 0)];
}

function toUsageRow(
  row: Sums,
  {
    query: { step, offsets = UTC },
    names,
  }: { readonly query: UsageQuery; readonly names: ReadonlyMap<string, string> },
): UsageRow {
  return {
    group: row.name,
    name: names.get(row.name),
    stepMs: step === "all" ? undefined : step === "day" ? startOfDay(row.step_ms, offsets) : row.step_ms,
    sums: toUsageSums(row),
  };
}

function toUsageSums(row: Sums): UsageSums {
  return {
    completions: row.completions,
    failed: row.failed,
    partial: row.partial,
    estimated: row.estimated,
    promptTokens: row.prompt_tokens,
    cachedTokens: row.cached_tokens,
    completionTokens: row.completion_tokens,
    reasoningTokens: row.reasoning_tokens,
    imageTokens: row.image_tokens,
    costMicroUsd: row.cost_micro_usd,
    ownCostMicroUsd: row.own_cost_micro_usd,
    refused: row.refused,
  };
}

/** Names of keys and accounts by ID; omits those that no longer exist, and keys of other owners. */
async function findNames(
  { query }: Database,
  { by, keyOwners }: Pick<UsageQuery, "by" | "keyOwners">,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const names = new Map<string, string>();
  if (by !== "key" && by !== "account" && by !== "team") return names;
  for (const chunk of chunksOf(ids)) {
    const keys = query.selectFrom("api_keys").select(["id", "name"]).where("id", "in", chunk);
    const ofOwners = keyOwners === undefined ? keys : keys.where("account_id", "in", keyOwners);
    const found =
      by === "key"
        ? ofOwners
        : query
            .selectFrom("accounts")
            .select(["id", sql<string>`coalesce(email, name)`.as("name")])
            .where("id", "in", chunk);
    for (const { id, name } of await retryWhileBusy(() => found.execute())) names.set(id, name);
  }
  return names;
}
