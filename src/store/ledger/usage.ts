import { type RawBuilder, sql } from "kysely";
import { startOfDay, UTC } from "../../ledger/time-zone.ts";
import type { UsageFilter, UsageGrain, UsageQuery, UsageRow, UsageStore } from "../../ledger/usage-store.ts";
import { type Database, inCodeUnits } from "../database.ts";
import { removeOld } from "../postgres/retention.ts";
import { chunksOf } from "../statements.ts";
import { retryWhileBusy } from "../store-error.ts";
import { createLatency } from "./latency.ts";
import type { LedgerPlaces } from "./ledger-store.ts";
import { stepOf } from "./steps.ts";
import { ALL, SUMS, USAGE_TABLES } from "./usage-hours.ts";

/** Sums removed per transaction: other transactions wait meanwhile. */
const PRUNE_ROWS = 1_000;

/** Expressions that the groups are formed by. */
const GROUPS: Readonly<Record<UsageQuery["by"], RawBuilder<string>>> = {
  none: sql<string>`''`,
  model: sql<string>`model`,
  key: sql<string>`key_id`,
  account: sql<string>`account_id`,
  outcome: sql<string>`outcome`,
};

/** Reports from the sums of hours and minutes and, for latency, from the latest entries. */
export function createUsageStore({ database, reports, compaction, databaseUrl }: LedgerPlaces): UsageStore {
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
      const groups = await findGroups(reports, query);
      const rows = await readSums(reports, query, groups);
      const names = await findNames(reports, query.by, groups.shown);
      const places = new Map(groups.shown.map((group, place) => [group, place]));
      const placeOf = ({ name }: Sums): number => places.get(name) ?? places.size;
      return rows
        .toSorted((left, right) => left.step_ms - right.step_ms || placeOf(left) - placeOf(right))
        .map((row) => toUsageRow(row, { query, names }));
    },

    async latency(query) {
      await compaction.flushed();
      return latency(query);
    },

    prune: (beforeMs) => prune("hour", beforeMs),
    pruneMinutes: (beforeMs) => prune("minute", beforeMs),
  };
}

/** Groups with rows of their own, in their order, and whether there are others. */
interface Groups {
  readonly shown: readonly string[];
  readonly hasOthers: boolean;
}

async function findGroups(database: Database, query: UsageQuery): Promise<Groups> {
  const { by, maxGroups } = query;
  if (by === "none") return { shown: [""], hasOthers: false };
  const limit = maxGroups === undefined ? sql`` : sql`limit ${sql.lit(maxGroups + 1)}`;
  const found = sql<{ name: string }>`
    select name from (
      select ${GROUPS[by]} as name, sum(cost_micro_usd) as cost, sum(completions) as completions, sum(refused) as refused
      from ${tableOf(query)} where ${matching(query)} group by 1) as totals
    order by cost desc, completions desc, refused desc, ${inCodeUnits(database, "name")} ${limit}`;
  const { rows } = await retryWhileBusy(() => found.execute(database.query));
  const shown = rows.map(({ name }) => name).slice(0, maxGroups);
  return { shown, hasOthers: shown.length < rows.length };
}

/** The sums of each step and group. Those of all other keys or accounts are what is left of the sums of all accounts. */
async function readSums(database: Database, query: UsageQuery, groups: Groups): Promise<readonly Sums[]> {
  const read = async (by: UsageQuery["by"], of: Parameters<typeof sumsOf>[1]): Promise<readonly Sums[]> => {
    const sums = sumsOf({ ...query, by }, of);
    return (await retryWhileBusy(() => sums.execute(database.query))).rows;
  };
  if (!groups.hasOthers || !readsEachKey(query)) return read(query.by, groups);
  const shown = await read(query.by, { ...groups, hasOthers: false, isOnly: true });
  const left = new Map((await read("none", { shown: [""], hasOthers: false })).map((row) => [row.step_ms, { ...row }]));
  for (const row of shown) {
    const others = left.get(row.step_ms);
    if (others !== undefined) for (const sum of [...SUMS, "failed"] as const) others[sum] -= row[sum];
  }
  return [...shown, ...[...left.values()].filter(({ completions, refused }) => completions + refused > 0)];
}

type Sums = Record<(typeof SUMS)[number], number> & {
  /** Start of the step; of days their number. */
  readonly step_ms: number;
  /** Empty for the sum of all groups that are not shown. */
  readonly name: string;
  failed: number;
};

/** Query of the sums of each step and shown group, and with `hasOthers` of all other groups together, unless `isOnly`. */
export function sumsOf(
  query: UsageQuery,
  { shown, hasOthers, isOnly = false }: Groups & { readonly isOnly?: boolean },
): RawBuilder<Sums> {
  const { step, grain = "hour", offsets = UTC } = query;
  const group = GROUPS[query.by];
  const only = isOnly ? sql`and ${group} in (${sql.join(shown)})` : sql``;
  const name = hasOthers ? sql`case when ${group} in (${sql.join(shown)}) then ${group} else '' end` : group;
  return sql<Sums>`
    select ${stepOf(USAGE_TABLES[grain].column, step, offsets)} as step_ms, ${name} as name,
      ${sql.join(SUMS.map((sum) => sql`sum(${sql.ref(sum)}) as ${sql.ref(sum)}`))},
      sum(case when outcome = 'served' then 0 else completions end) as failed
    from ${tableOf(query)} where ${matching(query)} ${only} group by 1, 2`;
}

function tableOf({ grain = "hour" }: Pick<UsageQuery, "grain">): RawBuilder<unknown> {
  return sql.table(USAGE_TABLES[grain].table);
}

/** Whether a report reads rows of all accounts one by one. */
function readsEachKey({ by, accountId, keyId }: Pick<UsageQuery, "by" | "accountId" | "keyId">): boolean {
  return accountId === undefined && keyId === undefined && (by === "key" || by === "account");
}

function matching({
  by,
  grain = "hour",
  sinceMs,
  untilMs,
  accountId,
  keyId,
  model,
  outcome,
}: UsageFilter & Pick<UsageQuery, "by" | "grain">): RawBuilder<unknown> {
  const startMs = sql.ref(USAGE_TABLES[grain].column);
  const conditions = [sql`${startMs} >= ${sinceMs}`, sql`${startMs} < ${untilMs}`];
  if (accountId === undefined && keyId === undefined)
    conditions.push(readsEachKey({ by }) ? sql`account_id <> ${ALL}` : sql`account_id = ${ALL}`);
  if (accountId !== undefined) conditions.push(sql`account_id = ${accountId}`);
  if (keyId !== undefined) conditions.push(sql`key_id = ${keyId}`);
  if (model !== undefined) conditions.push(sql`model = ${model}`);
  if (outcome === "failed") conditions.push(sql`outcome <> 'served'`);
  else if (outcome !== undefined) conditions.push(sql`outcome = ${outcome}`);
  return sql.join(conditions, sql` and `);
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
    sums: {
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
    },
  };
}

/** Names of keys and accounts by ID; omits those that no longer exist. */
async function findNames(
  { query }: Database,
  by: UsageQuery["by"],
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const names = new Map<string, string>();
  if (by !== "key" && by !== "account") return names;
  for (const chunk of chunksOf(ids)) {
    const found =
      by === "key"
        ? query.selectFrom("api_keys").select(["id", "name"]).where("id", "in", chunk)
        : query
            .selectFrom("accounts")
            .select(["id", sql<string>`coalesce(email, name)`.as("name")])
            .where("id", "in", chunk);
    for (const { id, name } of await retryWhileBusy(() => found.execute())) names.set(id, name);
  }
  return names;
}
