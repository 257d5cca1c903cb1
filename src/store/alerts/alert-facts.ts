import { sql } from "kysely";
import type { AlertFacts } from "../../alerts/alert-store.ts";
import { NO_CALLER, STOPPED } from "../../core/ledger.ts";
import { UNKNOWN_MODEL } from "../../ledger/refusal-store.ts";
import type { Database } from "../database.ts";
import { ALL } from "../ledger/usage-hours.ts";
import { SHARES } from "../sqlite/percentiles.ts";
import { retryWhileBusy } from "../store-error.ts";
import { budgetsOf } from "./budgets.ts";
import { endUserBudgetsOf } from "./end-user-budgets.ts";
import { isNew } from "./is-new.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Completions read for the latencies of a time. */
const MAX_COMPLETIONS = 50_000;

/** Outcomes that do not count against a model: served, stopped, or caused by the caller. */
const BLAMELESS = [...STOPPED, "served", "invalid_request", "upstream_rejected"];

/** The AlertFacts of the database, read by its connections for reports. */
export function createAlertFacts(reports: Database): AlertFacts {
  const { query, kind } = reports;
  return {
    endUserBudgets: (asked) => retryWhileBusy(() => endUserBudgetsOf(query, kind, asked)),
    budgets: (asked) => retryWhileBusy(() => budgetsOf(query, asked)),

    async expiringKeys({ nowMs, untilMs, ofAccount, limit }) {
      const found = sql<{ id: string; name: string; account_id: string; expires_at_ms: number }>`
        select id, name, account_id, expires_at_ms from (
          select id, name, account_id, expires_at_ms, ${isNew("key:", "api_keys.id", ["key_expiring"])} as is_new,
            row_number() over (partition by account_id order by expires_at_ms, id) as place
          from api_keys
          where expires_at_ms > ${nowMs} and expires_at_ms <= ${untilMs} and revoked_at_ms is null and replaced_by is null
        ) as expiring
        where is_new = 0 or place <= ${ofAccount}
        order by is_new, place, expires_at_ms, id limit ${limit}`;
      const { rows } = await retryWhileBusy(() => found.execute(query));
      return rows.map(({ id, name, account_id, expires_at_ms }) => {
        return { keyId: id, name, accountId: account_id, expiresAtMs: expires_at_ms };
      });
    },

    async modelTraffic({ sinceMs, untilMs }) {
      const found = sql<{ model: string; completions: number; failed: number; refused: number }>`
        select model, sum(completions) as completions, sum(refused) as refused,
          sum(case when outcome in (${sql.join(BLAMELESS)}) then 0 else completions end) as failed
        from usage_minutes where account_id = ${ALL} and minute_ms >= ${sinceMs} and minute_ms < ${untilMs}
          and model <> ${UNKNOWN_MODEL}
        group by model`;
      const { rows } = await retryWhileBusy(() => found.execute(query));
      return rows.map(({ model, ...sums }) => ({ group: model, ...sums }));
    },

    async keyTraffic({ sinceMs, untilMs, minRequests, errorPercent, ofAccount, limit }) {
      const found = sql<KeyTrafficRow>`
        select key_id, name, account_id, completions, failed, refused from (
          select sums.*, name, account_id, ${isNew("key:", "sums.key_id", ["error_rate"])} as is_new,
            row_number() over (partition by account_id order by failed + refused desc, key_id) as place
          from (
            select key_id, sum(completions) as completions, sum(refused) as refused,
              sum(case when outcome in ('served', 'cancelled') then 0 else completions end) as failed
            from usage_minutes where account_id <> ${ALL} and key_id <> ${NO_CALLER}
              and minute_ms >= ${sinceMs} and minute_ms < ${untilMs}
            group by key_id having sum(completions) + sum(refused) >= ${minRequests}
          ) as sums join api_keys on api_keys.id = sums.key_id
          where (failed + refused) * 100 >= (completions + refused) * ${sql.lit(errorPercent)}
        ) as failing
        where is_new = 0 or place <= ${ofAccount}
        order by is_new, place, failed + refused desc, key_id limit ${limit}`;
      const { rows } = await retryWhileBusy(() => found.execute(query));
      return rows.map(({ key_id, name, account_id, ...sums }) => {
        return { group: key_id, keyId: key_id, name, accountId: account_id, ...sums };
      });
    },

    async latencies({ sinceMs, untilMs }) {
      const p95 =
        kind === "sqlite"
          ? sql`percentiles(duration_ms)`
          : sql`array_to_json(percentile_disc(array[${sql.join(Object.values(SHARES).map((share) => sql.lit(share)))}])
              within group (order by duration_ms))::text`;
      const found = sql<{ model: string; served: number; durations: string }>`
        select coalesce(served_model, requested_model) as model, count(*) as served, ${p95} as durations
        from (
          select served_model, requested_model, outcome, duration_ms from completions
          where ended_at_ms >= ${sinceMs} and ended_at_ms < ${untilMs}
          order by ended_at_ms desc limit ${sql.lit(MAX_COMPLETIONS)}
        ) as newest
        where outcome = 'served' group by 1`;
      const { rows } = await retryWhileBusy(() => found.execute(query));
      return rows.map(({ model, served, durations }) => {
        const [, p95Ms = 0] = JSON.parse(durations) as number[];
        return { model, served, p95Ms };
      });
    },

    async hourlySpend({ hourMs, minMicroUsd, days, limit }) {
      const spending = sql<{ account_id: string; name: string; spent: number }>`
        select sums.account_id, coalesce(accounts.name, sums.account_id) as name, sums.spent from (
          select account_id, sum(cost_micro_usd) as spent from usage_hours
          where hour_ms = ${hourMs} and account_id <> ${ALL} and account_id <> ${NO_CALLER}
          group by account_id having sum(cost_micro_usd) >= ${minMicroUsd} and sum(cost_micro_usd) > 0
          order by spent desc limit ${limit}
        ) as sums left join accounts on accounts.id = sums.account_id`;
      const { rows } = await retryWhileBusy(() => spending.execute(query));
      const hours = Array.from({ length: days }, (_, index) => hourMs - (index + 1) * DAY_MS);
      const facts = [];
      for (const { account_id: accountId, name, spent } of rows) {
        const before = sql<{ hour_ms: number; spent: number }>`
          select hour_ms, sum(cost_micro_usd) as spent from usage_hours
          where account_id = ${accountId} and hour_ms in (${sql.join(hours)}) group by hour_ms`;
        const first = sql<{ hour_ms: number | null }>`
          select min(hour_ms) as hour_ms from usage_hours where account_id = ${accountId}`;
        const spentAt = new Map(
          (await retryWhileBusy(() => before.execute(query))).rows.map((row) => [row.hour_ms, row.spent]),
        );
        const [earliest] = (await retryWhileBusy(() => first.execute(query))).rows;
        facts.push({
          accountId,
          name,
          spentMicroUsd: spent,
          beforeMicroUsd: hours.map((hour) => spentAt.get(hour) ?? 0),
          firstHourMs: earliest?.hour_ms ?? hourMs,
        });
      }
      return facts;
    },
  };
}

interface KeyTrafficRow {
  readonly key_id: string;
  readonly name: string;
  readonly account_id: string;
  readonly completions: number;
  readonly failed: number;
  readonly refused: number;
}
