import { type Clock, sleep } from "../core/clock.ts";

/** The time between saying that no work is taken any more and refusing it, in which balancers look elsewhere. */
export class ShutdownDelay {
  readonly #clock: Clock;
  readonly #shutdownDelayMs: number;
  readonly #cut = new AbortController();

  constructor(clock: Clock, shutdownDelayMs: number) {
    this.#clock = clock;
    this.#shutdownDelayMs = shutdownDelayMs;
  }

  /** Resolves when the time is over, or was cut short. */
  async wait(): Promise<void> {
    if (this.#shutdownDelayMs > 0) await sleep(this.#clock, this.#shutdownDelayMs, this.#cut.signal);
  }

  /** Waits no longer, now and later. */
  cut(): void {
    this.#cut.abort();
  }
}
