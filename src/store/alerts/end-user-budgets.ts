import { type Kysely, sql } from "kysely";
import type { EndUserBudgetFact, EndUserBudgetQuery } from "../../alerts/alert-store.ts";
import { periodAt } from "../../core/clock.ts";
import type { Schema } from "../schema.ts";
import { isNew } from "./is-new.ts";

interface Row {
  readonly id: string;
  readonly name: string;
  readonly account_id: string;
  readonly period: string;
  readonly budget: number;
  /** Numbers of end users at each share. */
  readonly [reached: `reached_${number}`]: number;
}

/** Keys whose end users are near their budgets: as `AlertFacts.endUserBudgets`. */
export async function endUserBudgetsOf(
  query: Kysely<Schema>,
  kind: "sqlite" | "postgres",
  { nowMs, percents, ofAccount, limit }: EndUserBudgetQuery,
): Promise<EndUserBudgetFact[]> {
  const isSqlite = kind === "sqlite";
  const setting = (name: string) =>
    isSqlite
      ? sql`json_extract(attribution_limits, ${sql.lit(`$.${name}`)})`
      : sql`attribution_limits::json ->> ${sql.lit(name)}`;
  const budget = sql`cast(${setting("endUserBudgetMicroUsd")} as bigint)`;
  const subject = isSqlite ? sql`subject` : sql`subject collate "C"`;
  const own = sql`coalesce(limit_micro_usd, budget)`;
  const reached = percents.map(
    (percent, index) =>
      sql`sum(case when spent_micro_usd * 100 >= ${own} * ${sql.lit(percent)} then 1 else 0 end) as ${sql.ref(`reached_${index}`)}`,
  );
  const found = sql<Row>`
    with given as (
      select id, name, account_id, coalesce(line_id, id) as family, ${budget} as budget,
        case when ${setting("endUserBudgetPeriod")} = 'month' then ${periodAt(nowMs, "month")} else ${periodAt(nowMs, "day")} end as period
      from api_keys where attribution_limits is not null and ${budget} > 0
        and revoked_at_ms is null and replaced_by is null and (expires_at_ms is null or expires_at_ms > ${nowMs})
    ), near as (
      select id, name, account_id, period, budget, ${sql.join(reached)}
      from given join spending on kept_until_ms is not null and month = period
        and ${subject} > 'end_user:' || family || ':' and ${subject} < 'end_user:' || family || ';'
      where ${own} > 0 and spent_micro_usd * 100 >= ${own} * ${sql.lit(percents[0]!)}
      group by id, name, account_id, period, budget
    ), ranked as (
      select near.*, ${isNew("key:", "near.id", ["end_user_budget"])} as is_new,
        row_number() over (partition by account_id order by reached_0 desc, id) as place
      from near
    )
    select * from ranked where is_new = 0 or place <= ${ofAccount} order by is_new, place, id limit ${limit}`;
  const { rows } = await found.execute(query);
  return rows.map((row) => ({
    keyId: row.id,
    accountId: row.account_id,
    name: row.name,
    period: row.period,
    budgetMicroUsd: row.budget,
    reached: percents.map((percent, index) => ({ percent, endUsers: row[`reached_${index}`]! })),
  }));
}
