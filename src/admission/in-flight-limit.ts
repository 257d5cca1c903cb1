/** Length of a window in milliseconds. */
export const WINDOW_MS = 100;

/** Initial and lowest limit. */
const START = 512;
const LEAST = 64;
/** Target load. */
const TARGET = 0.95;
/** Load of an event loop that never sleeps; below 1 because events get cheaper in long turns. */
const BUSY = 0.9;
/** Event loop delays up to USUAL_DELAY_MS are ignored; FULL_DELAY_MS beyond it is a load of 1. */
const USUAL_DELAY_MS = 5;
const FULL_DELAY_MS = 200;
/** Consecutive windows that must be above the target: garbage collections and bursts are shorter. */
const STANDING = 3;
/** The limit falls by at most FALL in a window, and rises by RISE times the square of the free load. */
const FALL = 0.1;
const RISE = 0.1;
/** Windows in the mean of the start rate; only windows with waiting completions count. Streams may end together. */
const RATE_WINDOWS = 50;
/** Prior of the start rate per millisecond, and its weight in windows: a queue that forms is measured by its first windows. */
const USUAL_BEGINS_PER_MS = 1;
const USUAL_WINDOWS = 1;
/** Decay towards the prior in a window without waiting completions. */
const FORGETTING = { rate: 0.002, windows: 0.05 } as const;

/** Measurements of one window. */
export interface LoadWindow {
  /** Completions in flight at its end. */
  readonly inFlight: number;
  /** Completions begun in it. */
  readonly begun: number;
  /** Whether completions wait for a slot. */
  readonly isFull: boolean;
  /** Busy share of the event loop: 0 to 1. */
  readonly busyShare: number;
  /** Event loop delay in milliseconds, without the time that other programs had the processor. */
  readonly delayMs: number;
}

/**
 * Limit of completions in flight that keeps the event loop busy without delay. It follows the measured load, so it permits
 * thousands of quiet streams or a few hundred busy ones.
 */
export class InFlightLimit {
  #limit = START;
  #beginsPerMs = USUAL_BEGINS_PER_MS;
  /** Weight of the start rate in windows. */
  #windows = USUAL_WINDOWS;
  #loads: readonly number[] = [];

  get value(): number {
    return this.#limit;
  }

  /** Completions that start in `ms` at the current rate. */
  begunIn(ms: number): number {
    return ms * this.#beginsPerMs;
  }

  /** Adjusts limit and rate to a window. */
  learn({ inFlight, begun, isFull, busyShare, delayMs }: LoadWindow): void {
    const load = busyShare * BUSY + Math.max(0, delayMs - USUAL_DELAY_MS) / FULL_DELAY_MS;
    this.#loads = [...this.#loads.slice(1 - STANDING), load];
    const standing = Math.min(...this.#loads);
    if (standing > TARGET) {
      const most = inFlight * Math.max(1 - FALL, TARGET / standing);
      this.#limit = Math.max(LEAST, Math.min(this.#limit, most));
    } else if (inFlight > this.#limit / 2) this.#limit *= 1 + RISE * Math.max(0, TARGET - load) ** 2;
    if (isFull) {
      this.#windows = Math.min(this.#windows + 1, RATE_WINDOWS);
      this.#beginsPerMs += (begun / WINDOW_MS - this.#beginsPerMs) / this.#windows;
    } else {
      // Without waiting completions the rate shows the demand, not the capacity. The rate decays slowly, because the queue is
      // empty for a moment when streams end together; its weight decays faster, so that the next queue is measured anew.
      this.#windows += (USUAL_WINDOWS - this.#windows) * FORGETTING.windows;
      this.#beginsPerMs += Math.max(0, USUAL_BEGINS_PER_MS - this.#beginsPerMs) * FORGETTING.rate;
    }
  }
}
