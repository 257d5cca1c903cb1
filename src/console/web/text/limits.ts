import type { Limits } from "../../../../gen/parley/console/v1/limits_pb.js";
import { formatMicroUsd } from "./money.ts";
import { formatShort } from "./number.ts";

/** Limits in a few words each. */
export function describeLimits(limits: Limits | undefined): string[] {
  if (limits === undefined) return [];
  const { requestsPerMinute, tokensPerMinute, concurrentRequests, monthlyBudgetMicroUsd } = limits;
  return [
    requestsPerMinute === undefined ? [] : `${formatShort(requestsPerMinute)} requests/min`,
    tokensPerMinute === undefined ? [] : `${formatShort(tokensPerMinute)} tokens/min`,
    concurrentRequests === undefined ? [] : `${formatShort(concurrentRequests)} at once`,
    monthlyBudgetMicroUsd === undefined ? [] : `${formatMicroUsd(monthlyBudgetMicroUsd)}/month`,
  ].flat();
}
