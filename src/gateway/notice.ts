import { type Clock, sleep } from "../core/clock.ts";

/** The time between saying that no work is taken any more and refusing it, in which balancers look elsewhere. */
export class Notice {
  readonly #clock: Clock;
  readonly #noticeMs: number;
  readonly #cut = new AbortController();

  constructor(clock: Clock, noticeMs: number) {
    this.#clock = clock;
    this.#noticeMs = noticeMs;
  }

  /** Resolves when the time is over, or was cut short. */
  async wait(): Promise<void> {
    if (this.#noticeMs > 0) await sleep(this.#clock, this.#noticeMs, this.#cut.signal);
  }

  /** Waits no longer, now and later. */
  cut(): void {
    this.#cut.abort();
  }
}
