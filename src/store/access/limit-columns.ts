import type { Limits } from "../../core/principal.ts";
import type { LimitColumns } from "../schema.ts";

/** The columns that hold the limits of a key or an account. */
export function toLimitColumns(limits: Limits): LimitColumns {
  return {
    requests_per_minute: limits.requestsPerMinute ?? null,
    tokens_per_minute: limits.tokensPerMinute ?? null,
    concurrent_requests: limits.concurrentRequests ?? null,
    monthly_budget_micro_usd: limits.monthlyBudgetMicroUsd ?? null,
  };
}

/** The limits of a key or an account. */
export function fromLimitColumns(row: LimitColumns): Limits {
  return {
    requestsPerMinute: row.requests_per_minute ?? undefined,
    tokensPerMinute: row.tokens_per_minute ?? undefined,
    concurrentRequests: row.concurrent_requests ?? undefined,
    monthlyBudgetMicroUsd: row.monthly_budget_micro_usd ?? undefined,
  };
}
