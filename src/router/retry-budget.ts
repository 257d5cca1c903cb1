import type { Failure } from "../core/failure.ts";

/** Retries that may always be under way at once, however few requests there are. */
const FLOOR = 3;
/** The share of a provider's requests under way that may be in their retry: one for five that are not. */
const SHARE = 1 / 6;

/**
 * Keeps retries from multiplying the load on a provider that is failing: while at most one is under way for five first
 * calls, it is called 1.2 times for each request, however long its failures take. Three may be in any case. A retry
 * counts from the beginning of its wait.
 */
export class RetryBudget {
  #requests = 0;
  #retries = 0;

  /** A request is under way; the returned function ends it. */
  begin(): () => void {
    this.#requests += 1;
    return () => {
      this.#requests -= 1;
    };
  }

  /** Takes room for one retry; the returned function gives it back. Undefined when there is none. */
  take(): (() => void) | undefined {
    if (this.#retries >= Math.max(FLOOR, this.#requests * SHARE)) return undefined;
    this.#retries += 1;
    return () => {
      this.#retries -= 1;
    };
  }
}

/** How long retries wait. */
export interface BackoffOptions {
  /** The upper bound of the first wait; doubled for each further one. */
  readonly baseMs: number;
  /** The upper bound of any wait, and the longest `retry-after` of a provider that is waited for. */
  readonly capMs: number;
}

/**
 * How long to wait before the retry number `retry` (from 0) after `failure`; undefined when it is not worth it. A
 * provider's own wish is followed, with jitter upwards only; otherwise the wait is random up to the bound ("full
 * jitter"), so that callers who failed together do not come back together. `random` gives 0 to 1.
 */
export function backoffMs(
  failure: Failure,
  retry: number,
  { options, random }: { options: BackoffOptions; random: () => number },
): number | undefined {
  if (!failure.transient) return undefined;
  if (failure.retryAfterMs === undefined) return random() * Math.min(options.baseMs * 2 ** retry, options.capMs);
  if (failure.retryAfterMs > options.capMs) return undefined;
  return failure.retryAfterMs * (1 + 0.1 * random());
}
