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
