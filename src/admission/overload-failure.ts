import { Failure } from "../core/failure.ts";

/** Why the process refused a completion: its queue is long, too many calls are in flight, or memory is short. */
export const OVERLOAD_REASONS = ["queue", "calls", "memory"] as const;
export type OverloadReason = (typeof OVERLOAD_REASONS)[number];

const MESSAGES: Readonly<Record<OverloadReason, string>> = {
  queue: "The gateway has more requests than it can answer at the moment. Try again shortly.",
  calls: "The gateway has as many calls under way as it may. Try again shortly.",
  memory: "The gateway is short of memory. Try again shortly.",
};

/** Callers are sent away for different times, so that they do not come back all at once. */
const RETRY_AFTER_MS = [1000, 1500, 2000, 2500, 3000, 3500, 4000, 4500] as const;

/** The refusal of a completion under overload. It is counted and not logged: there may be thousands a second. */
export class OverloadFailure extends Failure {
  readonly reason: OverloadReason;

  private constructor(reason: OverloadReason, retryAfterMs: number) {
    super("overloaded", MESSAGES[reason], { retryAfterMs });
    this.reason = reason;
  }

  // Made once: an Error notes where it was made, which costs as much as the rest of a refusal.
  static readonly #all = OVERLOAD_REASONS.flatMap((reason) =>
    RETRY_AFTER_MS.map((waitMs) => new OverloadFailure(reason, waitMs)),
  );
  static #used = 0;

  /** One of the refusals for this reason. */
  static because(reason: OverloadReason): OverloadFailure {
    OverloadFailure.#used = (OverloadFailure.#used + 1) % RETRY_AFTER_MS.length;
    return OverloadFailure.#all[OVERLOAD_REASONS.indexOf(reason) * RETRY_AFTER_MS.length + OverloadFailure.#used]!;
  }
}

/** The refusal of a request that its own key or account has no room for. */
export function noRoom(whose: "key" | "account", what: string): Failure {
  const name = whose === "key" ? "this API key" : "this account";
  return new Failure("rate_limited", `Rate limit reached for ${name}: ${what}. Try again in 1 s.`, {
    retryAfterMs: 1_000,
  });
}
