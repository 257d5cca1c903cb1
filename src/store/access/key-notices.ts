import { type RawBuilder, sql } from "kysely";
import type { KeyNotices } from "../../access/key-notices.ts";
import type { Database } from "../database.ts";
import { retryWhileBusy } from "../store-error.ts";

/** The KeyNotices in the database, read by its connections for reports. */
export function createKeyNotices({ query }: Database): KeyNotices {
  return {
    async expiring({ accountId, nowMs, untilMs, limit }) {
      const found = sql<{ id: string; name: string; account_id: string; expires_at_ms: number }>`
        select id, name, account_id, expires_at_ms from api_keys
        where expires_at_ms > ${nowMs} and expires_at_ms < ${untilMs} and revoked_at_ms is null and replaced_by is null
          ${ofAccount(accountId)}
        order by expires_at_ms, id limit ${limit}`;
      const { rows } = await retryWhileBusy(() => found.execute(query));
      return rows.map(({ id, name, account_id, expires_at_ms }) => {
        return { id, name, accountId: account_id, expiresAtMs: expires_at_ms };
      });
    },

    async nearBudget({ accountId, nowMs, month, share, limit }) {
      const found = sql<{ id: string; name: string; account_id: string; spent: number; budget: number }>`
        select id, name, account_id, spent_micro_usd as spent, monthly_budget_micro_usd as budget
        from api_keys join spending on subject = 'key:' || coalesce(line_id, id) and month = ${month}
        where monthly_budget_micro_usd > 0 and spent_micro_usd >= monthly_budget_micro_usd * ${sql.lit(share)}
          and revoked_at_ms is null and replaced_by is null and (expires_at_ms is null or expires_at_ms > ${nowMs})
          ${ofAccount(accountId)}
        order by spent_micro_usd * 1.0 / monthly_budget_micro_usd desc, id limit ${limit}`;
      const { rows } = await retryWhileBusy(() => found.execute(query));
      return rows.map(({ id, name, account_id, spent, budget }) => {
        return { id, name, accountId: account_id, spentMicroUsd: spent, budgetMicroUsd: budget };
      });
    },
  };
}

function ofAccount(accountId: string | undefined): RawBuilder<unknown> {
  return accountId === undefined ? sql`` : sql`and account_id = ${accountId}`;
}
