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
export function unknownId(what: string, id: string): Failure {
  return invalidField("id", isId(id) ? `there is no ${what} ${id}` : `there is no such ${what}`);
}

/** Range of each limit. A budget of zero is a way to stop spending. */
const RANGES: Readonly<Record<keyof Limits, readonly [name: string, min: number, max: number]>> = {
  requestsPerMinute: ["requests_per_minute", 1, 1e9],
  tokensPerMinute: ["tokens_per_minute", 1, 1e9],
  concurrentRequests: ["concurrent_requests", 1, 1e6],
  monthlyBudgetMicroUsd: ["monthly_budget_micro_usd", 0, 1e15],
};

/** Returns the limits if they are valid. Throws an `invalid_request` Failure that names the first invalid one. */
export function checkLimits(limits: Limits): Limits {
  for (const [field, [name, min, max]] of Object.entries(RANGES)) {
    const value = limits[field as keyof Limits];
    if (value === undefined || (Number.isSafeInteger(value) && value >= min && value <= max)) continue;
    throw invalidField(`limits.${name}`, `must be a whole number from ${min} to ${max}`);
  }
  return limits;
}
