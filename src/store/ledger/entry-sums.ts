import { type RawBuilder, sql } from "kysely";
import { STEP_MS, type UsageQuery } from "../../ledger/usage-store.ts";
import { type Database, inCodeUnits } from "../database.ts";
import { retryWhileBusy } from "../store-error.ts";
import { attributedTo } from "./attribution-filter.ts";
import { windowEnd } from "./log-pages.ts";
import { stepOf } from "./steps.ts";
import { SUMS } from "./usage-hours.ts";
import type { Sums } from "./usage-sums.ts";

/*
 * The sums of hours do not distinguish end users, sessions, agents and tags, of which there may be as many as completions.
 * Reports by them add up single completions: a bounded number of those that ended last.
 */

/** Completions, in a report by tag their tags, that a report adds up at most. Grouping that many different texts takes about half a second. */
const WINDOW = 100_000;

/** Time within which completions of the end of a report have ended: no completion takes longer. */
const LONGEST_MS = STEP_MS.day;

/** IDs of the accounts that are teams or service accounts. */
export const TEAMS = sql<string>`select id from accounts where kind <> 'person'`;

/** Expressions by which completions are grouped; null for completions without a group. */
const VALUES: Readonly<Record<UsageQuery["by"], RawBuilder<string | null>>> = {
  none: sql`null`,
  model: sql`coalesce(served_model, requested_model)`,
  key: sql`key_id`,
  account: sql`account_id`,
  team: sql`case when account_id in (${TEAMS}) then account_id end`,
  outcome: sql`outcome`,
  endUser: sql`end_user`,
  session: sql`session`,
  agent: sql`agent`,
  tag: sql`tags`,
};

/** Tags of a completion or of a group with the same tags; 1 without any. */
const tagCount = ({ kind }: Pick<Database, "kind">, tags: RawBuilder<unknown>): RawBuilder<number> =>
  sql<number>`coalesce(nullif(json_array_length(${kind === "postgres" ? sql`${tags}::json` : tags}), 0), 1)`;

/** Whether a report needs single completions. */
export function readsEntries({ by, endUser, session, agent, tag }: UsageQuery): boolean {
  const isFiltered = (endUser ?? session ?? agent ?? tag) !== undefined;
  return isFiltered || by === "endUser" || by === "session" || by === "agent" || by === "tag";
}

/** Sums of single completions. */
export interface EntrySums {
  /**
   * The groups of the largest cost with rows of their own; all others, and completions without a group, are in rows with an
   * empty name.
   */
  readonly sums: readonly Sums[];
  /** Sums of all completions together, each counted once; undefined without any. */
  readonly total: Sums | undefined;
  /** End of the earliest completion that was added up, where there are earlier ones in the time of the query. */
  readonly cutSinceMs: number | undefined;
}

/** Adds up completions by their start, as the sums of hours do. */
export async function sumEntries(
  database: Database,
  query: UsageQuery,
  { window = WINDOW }: { readonly window?: number | undefined } = {},
): Promise<EntrySums> {
  const { by, accountId, keyId, sinceMs } = query;
  const untilMs = query.untilMs + LONGEST_MS;
  const weight = by === "tag" ? tagCount(database, sql`tags`) : undefined;
  const ends = windowEnd(database, { accountId, keyId, sinceMs, untilMs }, { window, weight });
  const cutSinceMs = (await retryWhileBusy(() => ends.executeTakeFirst()))?.ended_at_ms;
  const statement = groupedSums(database, query, { sinceMs: cutSinceMs ?? sinceMs, untilMs });
  const { rows } = await retryWhileBusy(() => statement.execute(database.query));
  const own = rows.filter(({ kind }) => kind === "own");
  const ofSteps = rows.filter(({ kind }) => kind === "step");
  return {
    sums: [...own, ...othersOf(ofSteps, own)],
    total: ofSteps.length === 0 ? undefined : (rows.find(({ kind }) => kind === "total") ?? addUp(ofSteps)),
    cutSinceMs,
  };
}

function addUp(ofSteps: readonly Sums[]): Sums {
  const total = { ...ofSteps[0]! };
  for (const row of ofSteps.slice(1)) for (const column of COLUMNS) total[column] += row[column];
  return total;
}

/** Subtracts the sums of the groups with rows of their own from the sums of each step. */
function othersOf(ofSteps: readonly Sums[], own: readonly Sums[]): Sums[] {
  const left = new Map(ofSteps.map((row) => [row.step_ms, { ...row }]));
  for (const row of own) {
    const others = left.get(row.step_ms)!;
    for (const column of COLUMNS) others[column] -= row[column];
  }
  return [...left.values()].filter(({ completions }) => completions > 0);
}

/**
 * Query of the sums of completions that ended within a time: of the largest groups in each step (`own`), of each step (`step`, which counts a
 * completion once for each of its tags) and, by tag, of all completions (`total`). Groups are sorted by their names once, without their sums.
 */
function groupedSums(
  database: Database,
  query: UsageQuery,
  ended: { readonly sinceMs: number; readonly untilMs: number },
): RawBuilder<Sums & { readonly kind: "own" | "step" | "total" }> {
  const { by, step, offsets, maxGroups } = query;
  const values =
    database.kind === "postgres"
      ? sql`lateral json_array_elements_text(grouped.value::json) as tag (value)`
      : sql`json_each(grouped.value) as tag`;
  // Most completions of a session have the same tags: they are added up before their tags are separated.
  const named =
    by === "tag"
      ? sql`select grouped.*, tag.value as name from grouped join ${values} on true`
      : sql`select grouped.*, value as name from grouped where value <> ''`;
  const limit = maxGroups === undefined ? sql`` : sql`limit ${sql.lit(maxGroups)}`;
  const sums = (factor = sql``): RawBuilder<unknown> =>
    sql.join(COLUMNS.map((column) => sql`coalesce(sum(${sql.ref(column)} ${factor}), 0) as ${sql.ref(column)}`));
  const own = sql`select 'own' as kind, step_ms, name, `;
  const ofSteps = sql`union all select 'step' as kind, step_ms, '' as name, `;
  const shown = sql`from named where name in (select name from shown)`;
  // Several groups have the same tag, and count for each of theirs; of other names there is one group in each step.
  const results =
    by === "tag"
      ? sql`${own} ${sums()} ${shown} group by 2, 3
          ${ofSteps} ${sums(sql`* ${tagCount(database, sql`value`)}`)} from grouped group by 2
          union all select 'total' as kind, 0 as step_ms, '' as name, ${sums()} from grouped`
      : sql`${own} ${sql.join(COLUMNS.map((column) => sql.ref(column)))} ${shown}
          ${ofSteps} ${sums()} from grouped group by 2`;
  return sql`
    with grouped as materialized (
      select ${stepOf("started_at_ms", step, offsets)} as step_ms, ${VALUES[by]} as value, count(*) as completions,
        sum(case when outcome = 'served' then 0 else 1 end) as failed, 0 as refused,
        ${sql.join(ADDED.map((column) => sql`sum(${sql.ref(column)}) as ${sql.ref(column)}`))}
      from completions where ${matching(database, query, ended)} group by 1, 2),
    named as (${named}),
    shown as materialized (
      select name from (
        select name, sum(cost_micro_usd) as cost, sum(completions) as completions from named group by name) as totals
      order by cost desc, completions desc, ${inCodeUnits(database, "name")} ${limit})
    ${results}`;
}

function matching(
  database: Pick<Database, "kind">,
  query: UsageQuery,
  ended: { readonly sinceMs: number; readonly untilMs: number },
): RawBuilder<unknown> {
  const { sinceMs, untilMs, accountId, keyId, model, outcome } = query;
  const conditions = [
    sql`ended_at_ms >= ${ended.sinceMs} and ended_at_ms < ${ended.untilMs}`,
    sql`started_at_ms >= ${sinceMs} and started_at_ms < ${untilMs}`,
    ...attributedTo(database, query),
  ];
  if (accountId !== undefined) conditions.push(sql`account_id = ${accountId}`);
  if (keyId !== undefined) conditions.push(sql`key_id = ${keyId}`);
  if (model !== undefined) conditions.push(sql`coalesce(served_model, requested_model) = ${model}`);
  if (outcome === "failed") conditions.push(sql`outcome <> 'served'`);
  else if (outcome !== undefined) conditions.push(sql`outcome = ${outcome}`);
  return sql.join(conditions, sql` and `);
}

/** The columns of completions that are added up. */
const ADDED = SUMS.filter((sum) => sum !== "completions" && sum !== "refused");
const COLUMNS = [...SUMS, "failed"] as const;
