import { type RawBuilder, sql } from "kysely";
import { STEP_MS, type UsageFilter, type UsageQuery } from "../../ledger/usage-store.ts";
import { ALL, SUMS } from "./usage-hours.ts";

/** Expressions that the groups are formed by. */
export const GROUPS: Readonly<Record<UsageQuery["by"], RawBuilder<string>>> = {
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

/** Sums of a step and group. */
export type Sums = Record<(typeof SUMS)[number], number> & {
  readonly step_ms: number;
  /** Empty for the sum of all groups that are not shown. */
  readonly name: string;
  failed: number;
};

/** Groups with rows of their own, in their order. */
export interface Groups {
  readonly shown: readonly string[];
  /** What is read of all other groups: their sum, or nothing. Default: there are none. */
  readonly others?: "sum" | "none";
}

/** Query of the sums of each step and shown group. */
export function sumsOf({ by, step, ...filter }: UsageQuery, { shown, others }: Groups): RawBuilder<Sums> {
  const group = GROUPS[by];
  const only = others === "none" ? sql`and ${group} in (${sql.join(shown)})` : sql``;
  const name = others === "sum" ? sql`case when ${group} in (${sql.join(shown)}) then ${group} else '' end` : group;
  return sql<Sums>`
    select ${STEPS[step]} as step_ms, ${name} as name,
      ${sql.join(SUMS.map((sum) => sql`sum(${sql.ref(sum)}) as ${sql.ref(sum)}`))},
      sum(case when outcome = 'served' then 0 else completions end) as failed
    from usage_hours where ${matching({ by, ...filter })} ${only} group by 1, 2`;
}

/** Whether a report reads rows of all accounts one by one. */
export function readsEachKey({ by, accountId, keyId }: Pick<UsageQuery, "by" | "accountId" | "keyId">): boolean {
  return accountId === undefined && keyId === undefined && (by === "key" || by === "account");
}

/** Condition on `usage_hours` for the rows of a report. */
export function matching({
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
