import type { Clock } from "../core/clock.ts";

/** The time between saying that no work is taken any more and refusing it, in which balancers look elsewhere. */
export class ShutdownDelay {
  readonly #clock: Clock;
  readonly #shutdownDelayMs: number;
  #isCut = false;
  #cut = (): void => undefined;

  constructor(clock: Clock, shutdownDelayMs: number) {
    this.#clock = clock;
    this.#shutdownDelayMs = shutdownDelayMs;
  }

  /** Resolves when the time is over, or was cut short. */
  async wait(): Promise<void> {
    if (this.#isCut || this.#shutdownDelayMs === 0) return;
    await new Promise<void>((resolve) => {
      const cancel = this.#clock.after(this.#shutdownDelayMs, resolve);
      this.#cut = () => {
        cancel();
        resolve();
      };
    });
  }

  /** Waits no longer, now and later. */
  cut(): void {
    this.#isCut = true;
    this.#cut();
  }
}
