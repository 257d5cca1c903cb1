import { type RawBuilder, sql } from "kysely";
import { STEP_MS, type UsageFilter, type UsageQuery, type UsageRow, type UsageStore } from "../ledger/usage-store.ts";
import { retryWhileBusy } from "./busy.ts";
import { chunksOf } from "./chunks.ts";
import { type Database, inCodeUnits } from "./database.ts";
import { createLatency } from "./latency.ts";
import type { UsageHourRow } from "./schema.ts";
import { SUMS } from "./usage-hours.ts";

/** How many sums are removed at a time: others wait meanwhile. */
const PRUNE_ROWS = 1_000;

/** What each group is told apart by. */
const GROUPS: Readonly<Record<UsageQuery["by"], RawBuilder<string>>> = {
  none: sql<string>`''`,
  model: sql<string>`model`,
  key: sql<string>`key_id`,
  account: sql<string>`account_id`,
  outcome: sql<string>`outcome`,
};

/** Both databases divide integers to integers. */
const STEPS: Readonly<Record<UsageQuery["step"], RawBuilder<number>>> = {
  all: sql<number>`0`,
  hour: sql<number>`hour_ms`,
  day: sql<number>`hour_ms / ${sql.lit(STEP_MS.day)} * ${sql.lit(STEP_MS.day)}`,
};

/** Reports from the sums of hours, and from the latest entries. `reports` is where reading much keeps nobody waiting. */
export function createUsageStore(database: Database, reports: Database): UsageStore {
  return {
    async summarize(query) {
      const { rows } = await retryWhileBusy(() => sumsOf(reports, query).execute(reports.query));
      const names = await findNames(
        reports,
        query.by,
        rows.map(({ name }) => name),
      );
      return rows.map((row) => toUsageRow(row, { query, names }));
    },

    latency: createLatency(reports),

    async prune(beforeMs) {
      const key = sql`(hour_ms, account_id, key_id, model, outcome)`;
      const removed = sql`delete from usage_hours where ${key} in (
        select hour_ms, account_id, key_id, model, outcome from usage_hours
        where hour_ms < ${beforeMs} order by hour_ms limit ${sql.lit(PRUNE_ROWS)})`;
      return Number((await retryWhileBusy(() => removed.execute(database.query))).numAffectedRows);
    },
  };
}

type Sums = Pick<UsageHourRow, (typeof SUMS)[number]> & {
  readonly step_ms: number;
  readonly name: string;
  readonly failed: number;
};

/**
 * One statement, so that all of it is of one moment. The groups have their places by all their steps together, and those
 * beyond the last place are added up once more.
 */
function sumsOf(database: Database, { by, step, maxGroups = Number.MAX_SAFE_INTEGER, ...filter }: UsageQuery) {
  const addUp = sql.join(SUMS.map((sum) => sql`sum(${sql.ref(sum)}) as ${sql.ref(sum)}`));
  return sql<Sums>`
    with sums as (
      select ${STEPS[step]} as step_ms, ${GROUPS[by]} as name, ${addUp},
        sum(case when outcome = 'served' then 0 else completions end) as failed
      from usage_hours where ${matching(filter)} group by 1, 2),
    places as (
      select name, row_number() over (
        order by sum(cost_micro_usd) desc, sum(completions) desc, ${inCodeUnits(database, "name")}) as place
      from sums group by name),
    placed as (
      select sums.*, place, case when place <= ${maxGroups} then place else ${maxGroups} + 1 end as shown
      from sums join places on places.name = sums.name)
    select step_ms, case when max(place) <= ${maxGroups} then max(name) else '' end as name, ${addUp},
      sum(failed) as failed
    from placed group by step_ms, shown order by step_ms, shown`;
}

function matching({ sinceMs, untilMs, accountId, keyId, model, outcome }: UsageFilter): RawBuilder<unknown> {
  const conditions = [sql`hour_ms >= ${sinceMs}`, sql`hour_ms < ${untilMs}`];
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
    },
  };
}

/** What people call keys and accounts; nothing for those that are gone. */
async function findNames(
  { query }: Database,
  by: UsageQuery["by"],
  groups: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const names = new Map<string, string>();
  if (by !== "key" && by !== "account") return names;
  for (const chunk of chunksOf([...new Set(groups)])) {
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
