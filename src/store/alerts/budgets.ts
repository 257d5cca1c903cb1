import { type Kysely, sql } from "kysely";
import type { Rule } from "../../alerts/alert.ts";
import type { BudgetFact, BudgetQuery } from "../../alerts/alert-store.ts";
import type { Schema } from "../schema.ts";
import { isNew } from "./is-new.ts";

const RULES: readonly Rule[] = ["budget", "budget_forecast"];

interface BudgetRow {
  readonly id: string;
  readonly name: string;
  readonly account_id: string;
  readonly spent: number;
  readonly budget: number;
  readonly recent: number;
}

/** Keys and accounts near their budgets: as `AlertFacts.budgets`. */
export async function budgetsOf(query: Kysely<Schema>, asked: BudgetQuery): Promise<BudgetFact[]> {
  const { nowMs, month, share, defaultMicroUsd, ofAccount, limit, recentSinceMs } = asked;
  // Spending of a key's predecessors counts for its budget, so it counts for its pace, too.
  const keys = sql<BudgetRow>`
    with ranked as (
      select id, name, account_id, coalesce(line_id, id) as family,
        spent_micro_usd as spent, monthly_budget_micro_usd as budget,
        ${isNew("key:", "api_keys.id", RULES)} as is_new, row_number() over (
          partition by account_id order by spent_micro_usd * 1.0 / monthly_budget_micro_usd desc, id
        ) as place
      from api_keys join spending on subject = 'key:' || coalesce(line_id, id) and month = ${month}
      where monthly_budget_micro_usd > 0 and spent_micro_usd >= monthly_budget_micro_usd * ${sql.lit(share)}
        and revoked_at_ms is null and replaced_by is null and (expires_at_ms is null or expires_at_ms > ${nowMs})
    ), near as (
      select * from ranked where is_new = 0 or place <= ${ofAccount}
      order by is_new, place, spent * 1.0 / budget desc, id limit ${limit}
    ), pace as (
      select near.id, sum(cost_micro_usd) as recent
      from near join api_keys as member on coalesce(member.line_id, member.id) = near.family
        join usage_hours on key_id = member.id and hour_ms >= ${recentSinceMs}
      group by near.id
    )
    select near.id, name, account_id, spent, budget, coalesce(recent, 0) as recent
    from near left join pace on pace.id = near.id`;
  const budget = sql`coalesce(monthly_budget_micro_usd, ${defaultMicroUsd ?? 0})`;
  const accounts = sql<BudgetRow>`
    with near as (
      select id, name, spent_micro_usd as spent, ${budget} as budget
      from accounts join spending on subject = 'account:' || id and month = ${month}
      where ${budget} > 0 and spent_micro_usd >= ${budget} * ${sql.lit(share)} and disabled_at_ms is null
      order by ${isNew("account:", "accounts.id", RULES)}, spent_micro_usd * 1.0 / ${budget} desc, id limit ${limit}
    ), pace as (
      select account_id, sum(cost_micro_usd) as recent from usage_hours
      where account_id in (select id from near) and hour_ms >= ${recentSinceMs} group by account_id
    )
    select id, name, id as account_id, spent, budget, coalesce(recent, 0) as recent
    from near left join pace on pace.account_id = near.id`;
  const toFact =
    (isKey: boolean) =>
    ({ id, name, account_id, spent, budget: budgetMicroUsd, recent }: BudgetRow): BudgetFact => ({
      keyId: isKey ? id : undefined,
      accountId: account_id,
      name,
      spentMicroUsd: spent,
      budgetMicroUsd,
      recentMicroUsd: recent,
    });
  const [ofKeys, ofAccounts] = [await keys.execute(query), await accounts.execute(query)];
  return [...ofAccounts.rows.map(toFact(false)), ...ofKeys.rows.map(toFact(true))];
}
