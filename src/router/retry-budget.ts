/** Retries that may always be under way at once, however few requests there are. */
const FLOOR = 3;
/** The share of a provider's requests under way that may be retries. */
const SHARE = 0.2;

/**
 * Keeps retries from multiplying the load on a provider that is failing: at most a fifth of its requests under way,
 * and three in any case. A retry counts from the beginning of its wait.
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
