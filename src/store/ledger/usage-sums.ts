import { type RawBuilder, sql } from "kysely";
import type { UsageFilter, UsageQuery } from "../../ledger/usage-store.ts";
import { stepOf } from "./steps.ts";
import { ALL, SUMS, USAGE_TABLES } from "./usage-hours.ts";

type SummedGroup = Exclude<UsageQuery["by"], "endUser" | "session" | "agent" | "tag">;

/** Expressions that the groups are formed by. */
const GROUPS: Readonly<Record<SummedGroup, RawBuilder<string>>> = {
  none: sql<string>`''`,
  model: sql<string>`model`,
  key: sql<string>`key_id`,
  account: sql<string>`account_id`,
  team: sql<string>`account_id`,
  outcome: sql<string>`outcome`,
};

/** The expression that the groups of sums are formed by. Others are formed by `entry-sums.ts`. */
export function groupOf(by: UsageQuery["by"]): RawBuilder<string> {
  return GROUPS[by as SummedGroup];
}

/** Sums of a step and group. */
export type Sums = Record<(typeof SUMS)[number], number> & {
  /** Start of the step; of days their number. */
  readonly step_ms: number;
  /** Empty for the sum of all groups that are not shown. */
  readonly name: string;
  failed: number;
};

/** Groups with rows of their own, in their order. */
export interface Groups {
  readonly shown: readonly string[];
  /** How all other groups are read: as one sum, or not at all. Default: there are none. */
  readonly others?: "sum" | "none";
}

/** Query of the sums of each step and shown group. */
export function sumsOf(query: UsageQuery, { shown, others }: Groups): RawBuilder<Sums> {
  const { step, grain = "hour", offsets } = query;
  const group = groupOf(query.by);
  const only = others === "none" ? sql`and ${group} in (${sql.join(shown)})` : sql``;
  const name =
    others === "sum" && shown.length === 0
      ? sql`''`
      : others === "sum"
        ? sql`case when ${group} in (${sql.join(shown)}) then ${group} else '' end`
        : group;
  return sql<Sums>`
    select ${stepOf(USAGE_TABLES[grain].column, step, offsets)} as step_ms, ${name} as name,
      ${sql.join(SUMS.map((sum) => sql`sum(${sql.ref(sum)}) as ${sql.ref(sum)}`))},
      sum(case when outcome = 'served' then 0 else completions end) as failed
    from ${tableOf(query)} where ${matching(query)} ${only} group by 1, 2`;
}

/** The table that a report reads. */
export function tableOf({ grain = "hour" }: Pick<UsageQuery, "grain">): RawBuilder<unknown> {
  return sql.table(USAGE_TABLES[grain].table);
}

/** Whether a report reads rows of all accounts one by one. */
export function readsEachKey({ by, accountId, keyId }: Pick<UsageQuery, "by" | "accountId" | "keyId">): boolean {
  return accountId === undefined && keyId === undefined && (by === "key" || by === "account" || by === "team");
}

/** Condition on the table for the rows of a report. */
export function matching({
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
