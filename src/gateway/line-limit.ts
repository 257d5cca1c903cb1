import type { Clock } from "../core/clock.ts";

/** Limit of lines in a second that clients without a key, or those of one key, can cause: at 5,000 requests a second they were 500 GB a day. */
const MAX_LINES = 100;

/** Limits lines to MAX_LINES in a second. */
export class LineLimit {
  readonly #clock: Pick<Clock, "monotonic">;
  #sinceMs = -Infinity;
  #lines = 0;

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  /** Counts a line. `suppressed`: the lines of an earlier second that were over the limit; reported once. */
  take(): { readonly isLogged: boolean; readonly suppressed: number } {
    const nowMs = this.#clock.monotonic();
    let suppressed = 0;
    if (nowMs - this.#sinceMs >= 1000) {
      suppressed = Math.max(this.#lines - MAX_LINES, 0);
      this.#sinceMs = nowMs;
      this.#lines = 0;
    }
    return { isLogged: ++this.#lines <= MAX_LINES, suppressed };
  }
}
