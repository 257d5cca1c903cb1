import { type AttributionLimits, BudgetPeriod } from "../../gen/parley/console/v1/key_pb.js";
import type { UsageLimits } from "../../gen/parley/v1/key_pb.js";
import { formatMicroUsd } from "./money.ts";
import { formatShort } from "./number.ts";

/** Returns the effective limits: each own limit, or the default if it is not set. */
export function limitsInForce(own: UsageLimits | undefined, general: UsageLimits | undefined): UsageLimits | undefined {
  if (own === undefined || general === undefined) return own ?? general;
  return {
    ...own,
    requestsPerMinute: own.requestsPerMinute ?? general.requestsPerMinute,
    tokensPerMinute: own.tokensPerMinute ?? general.tokensPerMinute,
    concurrentRequests: own.concurrentRequests ?? general.concurrentRequests,
    monthlyBudgetMicroUsd: own.monthlyBudgetMicroUsd ?? general.monthlyBudgetMicroUsd,
  };
}

/** Formats each limit as a short text. */
export function describeLimits(limits: UsageLimits | undefined): string[] {
  if (limits === undefined) return [];
  const { requestsPerMinute, tokensPerMinute, concurrentRequests, monthlyBudgetMicroUsd } = limits;
  return [
    requestsPerMinute === undefined ? [] : `${formatShort(requestsPerMinute)} requests/min`,
    tokensPerMinute === undefined ? [] : `${formatShort(tokensPerMinute)} tokens/min`,
    concurrentRequests === undefined ? [] : `${formatShort(concurrentRequests)} concurrent`,
    monthlyBudgetMicroUsd === undefined ? [] : `${formatMicroUsd(monthlyBudgetMicroUsd)}/month`,
  ].flat();
}

/** Formats each limit of end users and sessions as a short text. */
export function describeAttributionLimits(limits: AttributionLimits | undefined): string[] {
  if (limits === undefined) return [];
  const { endUserRequestsPerMinute, endUserTokensPerMinute, endUserBudgetMicroUsd, endUserBudgetPeriod } = limits;
  const { sessionBudgetMicroUsd, requireEndUser } = limits;
  const period = endUserBudgetPeriod === BudgetPeriod.MONTH ? "month" : "day";
  return [
    endUserRequestsPerMinute === undefined ? [] : `${formatShort(endUserRequestsPerMinute)} requests/min per end user`,
    endUserTokensPerMinute === undefined ? [] : `${formatShort(endUserTokensPerMinute)} tokens/min per end user`,
    endUserBudgetMicroUsd === undefined ? [] : `${formatMicroUsd(endUserBudgetMicroUsd)}/${period} per end user`,
    sessionBudgetMicroUsd === undefined ? [] : `${formatMicroUsd(sessionBudgetMicroUsd)} per session`,
    requireEndUser ? "end user required" : [],
  ].flat();
}
