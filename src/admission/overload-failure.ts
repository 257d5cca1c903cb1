import { Failure } from "../core/failure.ts";

/** Reason of a refusal: long queue, too many calls, or short memory. */
export const OVERLOAD_REASONS = ["queue", "calls", "memory"] as const;
export type OverloadReason = (typeof OVERLOAD_REASONS)[number];

const MESSAGES: Readonly<Record<OverloadReason, string>> = {
  queue: "The gateway has more requests than it can answer at the moment. Try again shortly.",
  calls: "The gateway has reached its limit of calls in flight. Try again shortly.",
  memory: "The gateway is short of memory. Try again shortly.",
};

/** Different `retry-after` times, so that callers do not return together. */
const RETRY_AFTER_MS = [1000, 1500, 2000, 2500, 3000, 3500, 4000, 4500] as const;

/** Refusal under overload. Counted, not logged: there may be thousands per second. */
export class OverloadFailure extends Failure {
  readonly reason: OverloadReason;

  private constructor(reason: OverloadReason, retryAfterMs: number) {
    super("overloaded", MESSAGES[reason], { retryAfterMs, unavailable: "load" });
    this.reason = reason;
  }

  // Created once: the stack trace of an Error costs as much as the rest of a refusal.
  static readonly #all = OVERLOAD_REASONS.flatMap((reason) =>
    RETRY_AFTER_MS.map((waitMs) => new OverloadFailure(reason, waitMs)),
  );
  static #used = 0;

  /** A refusal for this reason. */
  static because(reason: OverloadReason): OverloadFailure {
    OverloadFailure.#used = (OverloadFailure.#used + 1) % RETRY_AFTER_MS.length;
    return OverloadFailure.#all[OVERLOAD_REASONS.indexOf(reason) * RETRY_AFTER_MS.length + OverloadFailure.#used]!;
  }
}

/** Refusal for a limit of the key or account. */
export function noRoom(whose: "key" | "account", what: string): Failure {
  const name = whose === "key" ? "this API key" : "this account";
  return new Failure("rate_limited", `Rate limit reached for ${name}: ${what}. Try again in 1 s.`, {
    retryAfterMs: 1_000,
  });
}
