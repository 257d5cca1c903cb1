import { type RawBuilder, sql } from "kysely";
import { STEP_MS, type UsageQuery } from "../../ledger/usage-store.ts";
import { type Database, inCodeUnits } from "../database.ts";
import { retryWhileBusy } from "../store-error.ts";
import { attributedTo } from "./attribution-filter.ts";
import { windowEnd } from "./log-pages.ts";
import { stepOf } from "./steps.ts";
import type { Sums } from "./usage-sums.ts";

/*
 * The sums of hours know nothing of end users, sessions, agents and tags, of which there may be as many as completions. Reports by them
 * add up single completions: a bounded number of those that ended last.
 */

/** Completions that a report adds up at most. */
const WINDOW = 100_000;

/** Time within which completions of the end of a report have ended: no completion takes longer. */
const LONGEST_MS = STEP_MS.day;

/** IDs of the accounts that are teams or service accounts. */
export const TEAMS = sql<string>`select id from accounts where kind <> 'person'`;

/** What completions are grouped by; null for those that are of no group. */
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

/** Whether a report needs single completions. */
export function readsEntries({ by, endUser, session, agent, tag }: UsageQuery): boolean {
  const isFiltered = (endUser ?? session ?? agent ?? tag) !== undefined;
  return isFiltered || by === "endUser" || by === "session" || by === "agent" || by === "tag";
}

/** Sums of single completions. */
export interface EntrySums {
  /** The groups of the largest cost with rows of their own; all others, and what is of none, in those with an empty name. */
  readonly sums: readonly Sums[];
  /** Of all completions together, each counted once. */
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
  const { accountId, keyId, sinceMs } = query;
  const time = { sinceMs, untilMs: query.untilMs + LONGEST_MS };
  const ends = windowEnd(database, { accountId, keyId, ...time }, { window });
  const cutSinceMs = (await retryWhileBusy(() => ends.executeTakeFirst()))?.ended_at_ms;
  const entries = entriesOf(query, { sinceMs: cutSinceMs ?? sinceMs, untilMs: time.untilMs });
  const read = async (statement: RawBuilder<Sums>): Promise<readonly Sums[]> =>
    (await retryWhileBusy(() => statement.execute(database.query))).rows;
  const sums = await read(groupedSums(database, query, entries));
  if (query.by !== "tag") return { sums, total: undefined, cutSinceMs };
  const [total] = await read(
    sql<Sums>`with entries as (${entries}) select 0 as step_ms, '' as name, ${SUMMED} from entries`,
  );
  return { sums, total: total!.completions === 0 ? undefined : total, cutSinceMs };
}

/** The completions of a query, those that ended within a time. */
function entriesOf(
  query: UsageQuery,
  ended: { readonly sinceMs: number; readonly untilMs: number },
): RawBuilder<unknown> {
  const { by, step, offsets, sinceMs, untilMs, accountId, keyId, model, outcome } = query;
  const conditions = [
    sql`ended_at_ms >= ${ended.sinceMs} and ended_at_ms < ${ended.untilMs}`,
    sql`started_at_ms >= ${sinceMs} and started_at_ms < ${untilMs}`,
    ...attributedTo(query),
  ];
  if (accountId !== undefined) conditions.push(sql`account_id = ${accountId}`);
  if (keyId !== undefined) conditions.push(sql`key_id = ${keyId}`);
  if (model !== undefined) conditions.push(sql`coalesce(served_model, requested_model) = ${model}`);
  if (outcome === "failed") conditions.push(sql`outcome <> 'served'`);
  else if (outcome !== undefined) conditions.push(sql`outcome = ${outcome}`);
  return sql`
    select ${stepOf("started_at_ms", step, offsets)} as step_ms, ${VALUES[by]} as value, outcome, partial, estimated, prompt_tokens,
      cached_tokens, completion_tokens, reasoning_tokens, image_tokens, cost_micro_usd, own_cost_micro_usd
    from completions where ${sql.join(conditions, sql` and `)}`;
}

/** The sums of each step, and of each of the largest groups. */
function groupedSums(
  database: Database,
  { by, maxGroups }: Pick<UsageQuery, "by" | "maxGroups">,
  entries: RawBuilder<unknown>,
): RawBuilder<Sums> {
  const values =
    database.kind === "postgres"
      ? sql`lateral json_array_elements_text(entries.value::json) as tag (value)`
      : sql`json_each(entries.value) as tag`;
  const named =
    by === "tag"
      ? sql`select entries.*, tag.value as name from entries left join ${values} on true`
      : sql`select entries.*, value as name from entries`;
  const limit = maxGroups === undefined ? sql`` : sql`limit ${sql.lit(maxGroups)}`;
  return sql<Sums>`
    with entries as materialized (${entries}),
    named as materialized (${named}),
    shown as (
      select name as shown_name from (
        select name, sum(cost_micro_usd) as cost, count(*) as completions from named where name is not null group by name) as totals
      order by cost desc, completions desc, ${inCodeUnits(database, "name")} ${limit})
    select step_ms, coalesce(shown_name, '') as name, ${SUMMED}
    from named left join shown on shown_name = name group by 1, 2`;
}

/** The sums of completions, and nothing refused. */
const SUMMED = sql`count(*) as completions, coalesce(sum(partial), 0) as partial, coalesce(sum(estimated), 0) as estimated,
  coalesce(sum(prompt_tokens), 0) as prompt_tokens, coalesce(sum(cached_tokens), 0) as cached_tokens,
  coalesce(sum(completion_tokens), 0) as completion_tokens, coalesce(sum(reasoning_tokens), 0) as reasoning_tokens,
  coalesce(sum(image_tokens), 0) as image_tokens, coalesce(sum(cost_micro_usd), 0) as cost_micro_usd,
  coalesce(sum(own_cost_micro_usd), 0) as own_cost_micro_usd, 0 as refused,
  coalesce(sum(case when outcome = 'served' then 0 else 1 end), 0) as failed`;
