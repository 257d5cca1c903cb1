import type { AttributionLimits } from "../core/attribution.ts";
import { type Failure, invalidField } from "../core/failure.ts";
import type { Limits } from "../core/principal.ts";

const MAX_NAME_LENGTH = 100;
/** Control and bidirectional formatting characters: with them a name could look like another. */
const FORBIDDEN = /[\p{Cc}\p{Bidi_Control}]/u;

/** Returns the name if it is valid. Throws an `invalid_request` Failure. */
export function checkName(name: string): string {
  if (name.trim() === "") throw invalidField("name", "enter a name");
  if (name.length > MAX_NAME_LENGTH || FORBIDDEN.test(name) || !name.isWellFormed()) {
    throw invalidField(
      "name",
      `must be 1 to ${MAX_NAME_LENGTH} characters, without control or bidirectional formatting characters`,
    );
  }
  return name;
}

/** Whether the text has the form of an ID such as `acct_default`; no other text is looked up, logged or repeated. */
export function isId(text: string): boolean {
  return /^[a-z]{2,8}_[0-9A-Za-z]{1,32}$/.test(text);
}

/**
 * The failure for an unknown ID. Repeats the ID only when it has the form of one: text pasted by mistake may be a secret,
 * and failures are logged.
 */
export function unknownId(what: string, id: string, field = "id"): Failure {
  return invalidField(field, isId(id) ? `there is no ${what} ${id}` : `there is no such ${what}`);
}

/** Range of each limit. A budget of zero is a way to stop spending. */
const RANGES: Readonly<Record<keyof Limits, Range>> = {
  requestsPerMinute: ["requests_per_minute", 1, 1e9],
  tokensPerMinute: ["tokens_per_minute", 1, 1e9],
  concurrentRequests: ["concurrent_requests", 1, 1e6],
  monthlyBudgetMicroUsd: ["monthly_budget_micro_usd", 0, 1e15],
};

/** Returns the limits if they are valid. Throws an `invalid_request` Failure that names the first invalid one. */
export function checkLimits(limits: Limits): Limits {
  for (const [field, range] of Object.entries(RANGES)) checkRange("limits", limits[field as keyof Limits], range);
  return limits;
}

/** `checkLimits` for the limits of end users and sessions. The result has no fields that are not set. */
export function checkAttributionLimits(limits: AttributionLimits): AttributionLimits {
  const { endUserBudgetMicroUsd, endUserBudgetPeriod, requiresEndUser } = limits;
  const numbers = ATTRIBUTION_RANGES.flatMap(([field, range]) => {
    checkRange("attribution_limits", limits[field], range);
    return limits[field] === undefined ? [] : [[field, limits[field]] as const];
  });
  if (endUserBudgetPeriod !== undefined && endUserBudgetMicroUsd === undefined)
    throw invalidField("attribution_limits.end_user_budget_period", "needs end_user_budget_micro_usd");
  return {
    ...Object.fromEntries(numbers),
    ...(endUserBudgetPeriod === "month" && { endUserBudgetPeriod }),
    ...(requiresEndUser === true && { requiresEndUser }),
  };
}

const ATTRIBUTION_RANGES = [
  ["endUserRequestsPerMinute", ["end_user_requests_per_minute", 1, 1e9]],
  ["endUserTokensPerMinute", ["end_user_tokens_per_minute", 1, 1e9]],
  ["endUserBudgetMicroUsd", ["end_user_budget_micro_usd", 0, 1e15]],
  ["sessionBudgetMicroUsd", ["session_budget_micro_usd", 0, 1e15]],
] as const satisfies readonly (readonly [keyof AttributionLimits, Range])[];

type Range = readonly [name: string, min: number, max: number];

function checkRange(of: string, value: number | undefined, [name, min, max]: Range): void {
  if (value === undefined || (Number.isSafeInteger(value) && value >= min && value <= max)) return;
  throw invalidField(`${of}.${name}`, `must be a whole number from ${min} to ${max}`);
}
