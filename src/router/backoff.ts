import type { Failure } from "../core/failure.ts";

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
