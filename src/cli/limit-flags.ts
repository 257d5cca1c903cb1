import type { AttributionLimits } from "../core/attribution.ts";
import type { Limits } from "../core/principal.ts";
import { type Flag, UsageError } from "./command.ts";

/** The flags for the limits of a key or an account. */
export const LIMIT_FLAGS = {
  rpm: { value: "N", help: "requests per minute, or none: then the account's or the configured limit applies" },
  tpm: { value: "N", help: "tokens per minute, of prompts and answers together, or none" },
  concurrency: { value: "N", help: "completions in flight at the same time, or none" },
  budget: { value: "USD", help: "US dollars per calendar month (UTC), or none" },
} as const satisfies Record<string, Flag>;

/** The flags for the limits of the end users and sessions of a key. */
export const ATTRIBUTION_LIMIT_FLAGS = {
  "end-user-rpm": { value: "N", help: "requests per minute of each end user, or none" },
  "end-user-tpm": { value: "N", help: "tokens per minute of each end user, or none" },
  "end-user-budget": {
    value: "USD/day|USD/month",
    help: "US dollars of each end user per day or month (UTC), or none",
  },
  "session-budget": { value: "USD", help: "US dollars of each session, or none" },
  "require-end-user": { value: "yes|no", help: "whether requests that name no end user are refused (default: no)" },
} as const satisfies Record<string, Flag>;

export const MICRO_USD = 1_000_000;
const MAX_COUNT = 1_000_000_000;
const MAX_USD = 1_000_000;

/** Returns the limits given by flags, over the previous ones. Throws UsageError. */
export function readLimits(flags: Readonly<Record<string, string>>, before: Limits): Limits {
  return {
    requestsPerMinute: readCount(flags["rpm"], "--rpm", before.requestsPerMinute),
    tokensPerMinute: readCount(flags["tpm"], "--tpm", before.tokensPerMinute),
    concurrentRequests: readCount(flags["concurrency"], "--concurrency", before.concurrentRequests),
    monthlyBudgetMicroUsd: readBudget(flags["budget"], "--budget", before.monthlyBudgetMicroUsd),
  };
}

/** Returns the limits of end users and sessions given by flags, over the previous ones. Throws UsageError. */
export function readAttributionLimits(
  flags: Readonly<Record<string, string>>,
  before: AttributionLimits = {},
): AttributionLimits {
  const { endUserRequestsPerMinute, endUserTokensPerMinute, sessionBudgetMicroUsd } = before;
  return {
    endUserRequestsPerMinute: readCount(flags["end-user-rpm"], "--end-user-rpm", endUserRequestsPerMinute),
    endUserTokensPerMinute: readCount(flags["end-user-tpm"], "--end-user-tpm", endUserTokensPerMinute),
    ...readEndUserBudget(flags["end-user-budget"], before),
    sessionBudgetMicroUsd: readBudget(flags["session-budget"], "--session-budget", sessionBudgetMicroUsd),
    requiresEndUser: readYes(flags["require-end-user"], before.requiresEndUser),
  };
}

function readEndUserBudget(
  text: string | undefined,
  { endUserBudgetMicroUsd, endUserBudgetPeriod }: AttributionLimits,
): Pick<AttributionLimits, "endUserBudgetMicroUsd" | "endUserBudgetPeriod"> {
  if (text === undefined) return { endUserBudgetMicroUsd, endUserBudgetPeriod };
  if (text === "none") return {};
  const [amount = "", period] = text.split("/");
  if (period !== "day" && period !== "month")
    throw new UsageError("--end-user-budget is an amount for a period, such as 0.50/day or 10/month, or none");
  return { endUserBudgetMicroUsd: readUsd(amount, "--end-user-budget"), endUserBudgetPeriod: period };
}

function readYes(text: string | undefined, before: boolean | undefined): boolean | undefined {
  if (text === undefined) return before;
  if (text === "yes" || text === "no") return text === "yes";
  throw new UsageError("--require-end-user is yes or no");
}

/** Whether any flag for limits of end users and sessions was given. */
export function namesAttributionLimits(flags: Readonly<Record<string, string>>): boolean {
  return Object.keys(ATTRIBUTION_LIMIT_FLAGS).some((name) => flags[name] !== undefined);
}

/** Whether any limit flag was given. */
export function namesLimits(flags: Readonly<Record<string, string>>): boolean {
  return Object.keys(LIMIT_FLAGS).some((name) => flags[name] !== undefined);
}

function readCount(text: string | undefined, flag: string, before: number | undefined): number | undefined {
  if (text === undefined) return before;
  if (text === "none") return undefined;
  const count = /^\d{1,10}$/.test(text) ? Number(text) : NaN;
  if (count >= 1 && count <= MAX_COUNT) return count;
  throw new UsageError(`${flag} is a whole number from 1 to ${MAX_COUNT}, or none`);
}

function readBudget(text: string | undefined, flag: string, before: number | undefined): number | undefined {
  return text === undefined ? before : readUsd(text, flag);
}

/** Returns an amount in micro-USD; undefined for `none`. `what`: its name for an error. Throws UsageError. */
export function readUsd(text: string, what: string): number | undefined {
  if (text === "none") return undefined;
  const usd = /^\d{1,7}(\.\d{1,6})?$/.test(text) ? Number(text) : NaN;
  if (usd <= MAX_USD) return Math.round(usd * MICRO_USD);
  throw new UsageError(`${what} is a number of US dollars such as 25 or 0.50, at most ${MAX_USD}, or none`);
}

/** Limits as JSON, with the names of the configuration: null for no limit. */
export function toLimitsJson(limits: Limits): object {
  const { requestsPerMinute, tokensPerMinute, concurrentRequests, monthlyBudgetMicroUsd } = limits;
  return {
    requests_per_minute: requestsPerMinute ?? null,
    tokens_per_minute: tokensPerMinute ?? null,
    concurrent_requests: concurrentRequests ?? null,
    monthly_budget_usd: monthlyBudgetMicroUsd === undefined ? null : monthlyBudgetMicroUsd / MICRO_USD,
  };
}

/** Limits of end users and sessions as JSON. */
export function toAttributionLimitsJson(limits: AttributionLimits = {}): object {
  const { endUserBudgetMicroUsd: endUser, sessionBudgetMicroUsd: session } = limits;
  return {
    end_user_requests_per_minute: limits.endUserRequestsPerMinute ?? null,
    end_user_tokens_per_minute: limits.endUserTokensPerMinute ?? null,
    end_user_budget_usd: endUser === undefined ? null : endUser / MICRO_USD,
    end_user_budget_period: endUser === undefined ? null : (limits.endUserBudgetPeriod ?? "day"),
    session_budget_usd: session === undefined ? null : session / MICRO_USD,
    require_end_user: limits.requiresEndUser ?? false,
  };
}

/** Limits in short form, for a table. */
export function describeLimits(limits: Limits, attribution: AttributionLimits = {}): string {
  const { endUserRequestsPerMinute, endUserTokensPerMinute, endUserBudgetMicroUsd, endUserBudgetPeriod } = attribution;
  const { sessionBudgetMicroUsd } = attribution;
  const { requestsPerMinute, tokensPerMinute, concurrentRequests, monthlyBudgetMicroUsd } = limits;
  const parts = [
    requestsPerMinute !== undefined && `${requestsPerMinute} rpm`,
    tokensPerMinute !== undefined && `${tokensPerMinute} tpm`,
    concurrentRequests !== undefined && `${concurrentRequests} at once`,
    monthlyBudgetMicroUsd !== undefined && `${monthlyBudgetMicroUsd / MICRO_USD} USD/month`,
    endUserRequestsPerMinute !== undefined && `${endUserRequestsPerMinute} rpm/end user`,
    endUserTokensPerMinute !== undefined && `${endUserTokensPerMinute} tpm/end user`,
    endUserBudgetMicroUsd !== undefined &&
      `${endUserBudgetMicroUsd / MICRO_USD} USD/${endUserBudgetPeriod ?? "day"}/end user`,
    sessionBudgetMicroUsd !== undefined && `${sessionBudgetMicroUsd / MICRO_USD} USD/session`,
    attribution.requiresEndUser === true && "end user required",
  ];
  return parts.filter((part) => part !== false).join(", ") || "-";
}
