import { type BudgetPeriod, endOfPeriod } from "../core/clock.ts";
import { Failure, invalidField } from "../core/failure.ts";
import type { LimitFacts } from "../core/limiter.ts";
import type { BudgetDecision } from "./budgets.ts";
import type { RateDecision, RateDemand, RateLimit, RateSubject } from "./rates.ts";

// Wording matters: some clients search messages for words that mean the end of a paid plan, and stop retrying.

const wholeNumber = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
/** Formats micro-USD with all digits: tests use small budgets, and a request may cost a hundredth of a cent. */
const usDollars = new Intl.NumberFormat("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 6 });
const dayOfMonth = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "long",
  year: "numeric",
  timeZone: "UTC",
});

/** The `rate_limited` failure of a demand. */
export function toRateFailure(
  refusal: Extract<RateDecision, { admitted: false }>,
  demand: RateDemand,
  limits: LimitFacts,
): Failure {
  const subject = demand.subjects.find((one) => one.subject === refusal.subject);
  const { limit, retryAfterMs } = refusal;
  const whose = nameOf(refusal.subject);
  const message = `${describe(limit, { whose, subject, demand })} Try again in ${toDuration(retryAfterMs)}.`;
  return new Failure("rate_limited", message, { retryAfterMs, limits });
}

/** The `budget_spent` failure of a demand with the worst case `amountMicroUsd`, at a Unix time. */
export function toBudgetFailure(
  refusal: Extract<BudgetDecision, { admitted: false }>,
  { amountMicroUsd, nowMs, limits }: { amountMicroUsd: number; nowMs: number; limits: LimitFacts },
): Failure {
  const { subject, limitMicroUsd, takenMicroUsd, period = "month" } = refusal;
  const spent = takenMicroUsd >= limitMicroUsd;
  const state = spent
    ? "is spent."
    : `has no room for this request, which may cost ${toUsd(amountMicroUsd)} (less with a lower max_tokens): ` +
      `${toUsd(takenMicroUsd)} are spent or held for requests in flight.`;
  const budget = `The ${ADJECTIVES[period]}budget of ${nameOf(subject)}, ${toUsd(limitMicroUsd)},`;
  if (period === "session") return new Failure("budget_spent", `${budget} ${state} Begin a new session.`, { limits });
  const endMs = endOfPeriod(nowMs, period);
  const message = `${budget} ${state} It begins anew on ${dayOfMonth.format(endMs)} (UTC).`;
  return new Failure("budget_spent", message, { retryAfterMs: endMs - nowMs, limits });
}

const ADJECTIVES: Readonly<Record<BudgetPeriod, string>> = { day: "daily ", month: "monthly ", session: "" };

/** The failure of a request without an end user, with a key that requires one. */
export function toNamelessFailure(): Failure {
  return invalidField(
    "end_user_id",
    "is required with this API key: name the end user in this field, or in the header parley-end-user",
  );
}

/** The failure while budgets are unavailable, because no money may be spent unchecked. */
export function toUncheckedFailure(cause: unknown, limits: LimitFacts): Failure {
  if (cause instanceof Failure) return cause;
  const message = "Budgets cannot be checked at the moment. Try again soon.";
  return new Failure("overloaded", message, { unavailable: "database", cause, limits });
}

/** The failure while the database is unavailable, when the slice of a budget (`budget-slices.ts`) has too little left. */
export function toSliceFailure(subject: string): Failure {
  const budget = `the monthly budget of ${nameOf(subject)}`;
  const message = `Budgets cannot be checked at the moment, and the part of ${budget} that may be spent meanwhile is used up. Try again soon.`;
  return new Failure("overloaded", message, { unavailable: "database" });
}

/** The failure under a budget when a model has no price. `subject`: the one with a monthly budget; undefined: an end user or session. */
export function toUnpricedFailure(subject: string | undefined): Failure {
  const reason = "The model has no price, or one that it may fall back to has none";
  const budget =
    subject === undefined
      ? "end users or sessions of this API key have a budget"
      : `${nameOf(subject)} has a monthly budget`;
  return new Failure(
    "permission_denied",
    `${reason}, and ${budget}. Use another model, or let the operator give it a price.`,
  );
}

interface Refused {
  readonly whose: string;
  readonly subject: RateSubject | undefined;
  readonly demand: RateDemand;
}

function describe(limit: RateLimit, { whose, subject, demand }: Refused): string {
  const count = (most: number | undefined, what: string): string =>
    `${wholeNumber.format(most ?? 0)} ${most === 1 ? what : `${what}s`}`;
  const reached = `Rate limit reached for ${whose}:`;
  switch (limit) {
    case "requests":
      return `${reached} ${count(subject?.requestsPerMinute, "request")} per minute.`;
    case "tokens": {
      const rate = `${count(subject?.tokensPerMinute, "token")} per minute`;
      return `${reached} ${rate}, and this request may take ${wholeNumber.format(demand.tokens)}.`;
    }
    case "concurrency":
      return `${reached} ${count(subject?.concurrentRequests, "request")} at a time.`;
  }
}

const NAMES: Readonly<Record<string, string>> = {
  key: "this API key",
  account: "this account",
  end_user: "this end user",
  session: "this session",
};

function nameOf(subject: string): string {
  return NAMES[subject.slice(0, subject.indexOf(":"))]!;
}

/** A duration in words, rounded up so that a retry does not come too early. */
function toDuration(ms: number): string {
  if (ms <= 10_000) return `${Math.ceil(ms / 100) / 10} s`;
  return ms <= 120_000 ? `${Math.ceil(ms / 1000)} s` : `${Math.ceil(ms / 60_000)} min`;
}

function toUsd(microUsd: number): string {
  return `${usDollars.format(microUsd / 1e6)} USD`;
}
