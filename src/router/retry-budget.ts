import type { Failure } from "../core/failure.ts";

/** Retries that may be in flight even with few requests. */
const FLOOR = 3;
/** Largest share of retries among a provider's requests in flight: one per five first attempts. */
const SHARE = 1 / 6;

/** Counts of a provider's retry budget, in this process. */
export interface RetryCounts {
  readonly granted: number;
  readonly refused: number;
  /** Permits that are taken and not yet released. */
  readonly inFlight: number;
}

/**
 * Limits the load of retries on a failing provider: at most 1.2 calls per request, however long its failures take. FLOOR
 * retries are always permitted. A retry counts from the start of its backoff.
 */
export class RetryBudget {
  #requests = 0;
  #retries = 0;
  #granted = 0;
  #refused = 0;

  get counts(): RetryCounts {
    return { granted: this.#granted, refused: this.#refused, inFlight: this.#retries };
  }

  /** Counts a request in flight; the returned function ends it. */
  begin(): () => void {
    this.#requests += 1;
    return () => {
      this.#requests -= 1;
    };
  }

  /** Takes a permit for one retry; the returned function releases it. Undefined when no permit is left. */
  take(): (() => void) | undefined {
    if (this.#retries >= Math.max(FLOOR, this.#requests * SHARE)) {
      this.#refused += 1;
      return undefined;
    }
    this.#granted += 1;
    this.#retries += 1;
    return () => {
      this.#retries -= 1;
    };
  }
}

/** Backoff of retries. */
export interface BackoffOptions {
  /** Upper bound of the first wait; doubled for each further one. */
  readonly baseMs: number;
  /** Upper bound of every wait, and the longest `retry-after` that is waited for. */
  readonly capMs: number;
}

/**
 * Milliseconds before retry number `retry` (from 0) after `failure`; undefined when no retry is allowed. A provider's `retry-after`
 * is the minimum, plus jitter. Without one the wait is random up to the bound (full jitter), so that callers that failed
 * together do not retry together. `random` returns 0 to 1.
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
