import { type RawBuilder, sql } from "kysely";
import {
  STEP_MS,
  type UsageFilter,
  type UsageQuery,
  type UsageRow,
  type UsageStore,
} from "../../ledger/usage-store.ts";
import { type Database, inCodeUnits } from "../database.ts";
import { removeOld } from "../postgres/retention.ts";
import { chunksOf } from "../statements.ts";
import { retryWhileBusy } from "../store-error.ts";
import { createLatency } from "./latency.ts";
import type { LedgerPlaces } from "./ledger-store.ts";
import { ALL, SUMS } from "./usage-hours.ts";

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

/** Start of a row's step. Integer division in both databases. */
const STEPS: Readonly<Record<UsageQuery["step"], RawBuilder<number>>> = {
  all: sql<number>`0`,
  hour: sql<number>`hour_ms`,
  day: sql<number>`hour_ms / ${sql.lit(STEP_MS.day)} * ${sql.lit(STEP_MS.day)}`,
};

/** Reports from the hourly sums and, for latency, from the latest entries. */
export function createUsageStore({ database, reports, compaction, databaseUrl }: LedgerPlaces): UsageStore {
  const latency = createLatency(reports);
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

    async prune(beforeMs) {
      await compaction.flushed();
      if (databaseUrl !== undefined) {
        const old = { table: "usage_hours", column: "hour_ms", beforeMs, most: PRUNE_ROWS } as const;
        return removeOld(database, { databaseUrl, ...old });
      }
      const key = sql`(hour_ms, account_id, key_id, model, outcome)`;
      const removed = sql`delete from usage_hours where ${key} in (
        select hour_ms, account_id, key_id, model, outcome from usage_hours
        where hour_ms < ${beforeMs} order by hour_ms limit ${sql.lit(PRUNE_ROWS)})`;
      return Number((await retryWhileBusy(() => removed.execute(database.query))).numAffectedRows);
    },
  };
}

/** Groups with rows of their own, in their order, and whether there are others. */
interface Groups {
  readonly shown: readonly string[];
  readonly hasOthers: boolean;
}

async function findGroups(database: Database, { by, maxGroups, ...filter }: UsageQuery): Promise<Groups> {
  if (by === "none") return { shown: [""], hasOthers: false };
  const limit = maxGroups === undefined ? sql`` : sql`limit ${sql.lit(maxGroups + 1)}`;
  const found = sql<{ name: string }>`
    select name from (
      select ${GROUPS[by]} as name, sum(cost_micro_usd) as cost, sum(completions) as completions
      from usage_hours where ${matching({ by, ...filter })} group by 1) as totals
    order by cost desc, completions desc, ${inCodeUnits(database, "name")} ${limit}`;
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
  return [...shown, ...[...left.values()].filter(({ completions }) => completions > 0)];
}

type Sums = Record<(typeof SUMS)[number], number> & {
  readonly step_ms: number;
  /** Empty for the sum of all groups that are not shown. */
  readonly name: string;
  failed: number;
};

/** Query of the sums of each step and shown group, and with `hasOthers` of all other groups together, unless `isOnly`. */
export function sumsOf(
  { by, step, ...filter }: UsageQuery,
  { shown, hasOthers, isOnly = false }: Groups & { readonly isOnly?: boolean },
): RawBuilder<Sums> {
  const group = GROUPS[by];
  const only = isOnly ? sql`and ${group} in (${sql.join(shown)})` : sql``;
  const name = hasOthers ? sql`case when ${group} in (${sql.join(shown)}) then ${group} else '' end` : group;
  return sql<Sums>`
    select ${STEPS[step]} as step_ms, ${name} as name,
      ${sql.join(SUMS.map((sum) => sql`sum(${sql.ref(sum)}) as ${sql.ref(sum)}`))},
      sum(case when outcome = 'served' then 0 else completions end) as failed
    from usage_hours where ${matching({ by, ...filter })} ${only} group by 1, 2`;
}

/** Whether a report reads rows of all accounts one by one. */
function readsEachKey({ by, accountId, keyId }: Pick<UsageQuery, "by" | "accountId" | "keyId">): boolean {
  return accountId === undefined && keyId === undefined && (by === "key" || by === "account");
}

function matching({
  by,
  sinceMs,
  untilMs,
  accountId,
  keyId,
  model,
  outcome,
}: UsageFilter & Pick<UsageQuery, "by">): RawBuilder<unknown> {
  const conditions = [sql`hour_ms >= ${sinceMs}`, sql`hour_ms < ${untilMs}`];
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
  { query: { step }, names }: { readonly query: UsageQuery; readonly names: ReadonlyMap<string, string> },
): UsageRow {
  return {
    group: row.name,
    name: names.get(row.name),
    stepMs: step === "all" ? undefined : row.step_ms,
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
