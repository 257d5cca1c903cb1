import type { Clock } from "../core/clock.ts";

/** The time between saying that no work is taken any more and refusing it, in which balancers look elsewhere. */
export class Notice {
  readonly #clock: Clock;
  readonly #noticeMs: number;
  #isCut = false;
  #cut = (): void => undefined;

  constructor(clock: Clock, noticeMs: number) {
    this.#clock = clock;
    this.#noticeMs = noticeMs;
  }

  /** Resolves when the time is over, or was cut short. */
  async wait(): Promise<void> {
    if (this.#isCut || this.#noticeMs === 0) return;
    await new Promise<void>((resolve) => {
      const cancel = this.#clock.after(this.#noticeMs, resolve);
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
