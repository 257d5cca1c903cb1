import { invalidField } from "../core/failure.ts";
import type { Limits } from "../core/principal.ts";

/** The least and the most that each limit can be. A budget of nothing is a way to stop spending. */
const RANGES: Readonly<Record<keyof Limits, readonly [name: string, min: number, max: number]>> = {
  requestsPerMinute: ["requests_per_minute", 1, 1e9],
  tokensPerMinute: ["tokens_per_minute", 1, 1e9],
  concurrentRequests: ["concurrent_requests", 1, 1e6],
  monthlyBudgetMicroUsd: ["monthly_budget_micro_usd", 0, 1e15],
};

/** The limits as they are. Throws an `invalid_request` Failure that names the first one that cannot be. */
export function checkLimits(limits: Limits): Limits {
  for (const [field, [name, min, max]] of Object.entries(RANGES)) {
    const value = limits[field as keyof Limits];
    if (value === undefined || (Number.isSafeInteger(value) && value >= min && value <= max)) continue;
    throw invalidField(`limits.${name}`, `must be a whole number from ${min} to ${max}`);
  }
  return limits;
}
