import type { Limits } from "../core/principal.ts";
import { type Flag, UsageError } from "./command.ts";

/** The flags for the limits of a key or an account. */
export const LIMIT_FLAGS = {
  rpm: { value: "N", help: "requests per minute, or none: then the account's or the configured limit applies" },
  tpm: { value: "N", help: "tokens per minute, of prompts and answers together, or none" },
  concurrency: { value: "N", help: "completions in flight at the same time, or none" },
  budget: { value: "USD", help: "US dollars per calendar month (UTC), or none" },
} as const satisfies Record<string, Flag>;

const MICRO_USD = 1_000_000;
const MAX_COUNT = 1_000_000_000;
const MAX_USD = 1_000_000;

/** Returns the limits given by flags, over the previous ones. Throws UsageError. */
export function readLimits(flags: Readonly<Record<string, string>>, before: Limits): Limits {
  return {
    requestsPerMinute: readCount(flags["rpm"], "--rpm", before.requestsPerMinute),
    tokensPerMinute: readCount(flags["tpm"], "--tpm", before.tokensPerMinute),
    concurrentRequests: readCount(flags["concurrency"], "--concurrency", before.concurrentRequests),
    monthlyBudgetMicroUsd: readUsd(flags["budget"], before.monthlyBudgetMicroUsd),
  };
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

function readUsd(text: string | undefined, before: number | undefined): number | undefined {
  if (text === undefined) return before;
  if (text === "none") return undefined;
  const usd = /^\d{1,7}(\.\d{1,6})?$/.test(text) ? Number(text) : NaN;
  if (usd <= MAX_USD) return Math.round(usd * MICRO_USD);
  throw new UsageError(`--budget is a number of US dollars such as 25 or 0.50, at most ${MAX_USD}, or none`);
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

/** Limits in short form, for a table. */
export function describeLimits(limits: Limits): string {
  const { requestsPerMinute, tokensPerMinute, concurrentRequests, monthlyBudgetMicroUsd } = limits;
  const parts = [
    requestsPerMinute !== undefined && `${requestsPerMinute} rpm`,
    tokensPerMinute !== undefined && `${tokensPerMinute} tpm`,
    concurrentRequests !== undefined && `${concurrentRequests} at once`,
    monthlyBudgetMicroUsd !== undefined && `${monthlyBudgetMicroUsd / MICRO_USD} USD/month`,
  ];
  return parts.filter((part) => part !== false).join(", ") || "-";
}
