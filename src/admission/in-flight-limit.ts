/** A window's length, in milliseconds. */
export const WINDOW_MS = 100;

/** The limit of a process that has learnt nothing yet, and the lowest. */
const START = 512;
const LEAST = 64;
/** The load that the limit aims at. */
const TARGET = 0.95;
/** A loop that never sleeps counts as this load: the more there is to do in a turn, the less each event costs. */
const BUSY = 0.9;
/** A delay of the event loop beyond the usual one counts as full load when it is this long, in milliseconds. */
const USUAL_DELAY_MS = 5;
const FULL_DELAY_MS = 200;
/** The load counts when it was there in this many windows: a collection of garbage or a burst passes. */
const STANDING = 3;
/** The limit falls by no more than this share in a window, and rises by this share times the room that is left. */
const FALL = 0.1;
const RISE = 0.1;
/** The rate of beginnings is the mean of this many windows in which completions waited: streams may end together. */
const RATE_WINDOWS = 50;
/** The rate of a process that has learnt nothing yet, per millisecond, and what that counts for, in windows. */
const USUAL_BEGINS_PER_MS = 1;
const USUAL_WINDOWS = 3;
/** What a window in which nothing waited brings back of both. */
const FORGETTING = { rate: 0.002, windows: 0.05 } as const;

/** One window of the event loop. */
export interface LoadWindow {
  /** Completions in flight at its end. */
  readonly inFlight: number;
  /** Completions begun in it. */
  readonly begun: number;
  /** Whether completions wait for a slot. */
  readonly isFull: boolean;
  /** The share of it in which the event loop was busy: 0 to 1. */
  readonly busyShare: number;
  /** How late the event loop was, without the time that other programs took, in milliseconds. */
  readonly delayMs: number;
}

/**
 * How many completions may be in flight: as many as keep the event loop busy and in time. It follows the load of those in
 * flight, so that thousands of quiet streams and a few hundred busy ones are both right.
 */
export class InFlightLimit {
  #limit = START;
  #beginsPerMs = USUAL_BEGINS_PER_MS;
  /** How many windows the rate is the mean of. */
  #windows = USUAL_WINDOWS;
  #loads: readonly number[] = [];

  get value(): number {
    return this.#limit;
  }

  /** How many completions are begun in this time, at the rate of the last seconds. */
  begunIn(ms: number): number {
    return ms * this.#beginsPerMs;
  }

  /** Learns from a window. */
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
      // A rate that nothing had to wait for says how much was asked, not how much could be done. The known rate is forgotten
      // slowly: when streams end together the queue is empty for a moment, and the crowd is as large as before. How much
      // it counts is forgotten sooner, so that the next crowd is measured anew.
      this.#windows += (USUAL_WINDOWS - this.#windows) * FORGETTING.windows;
      this.#beginsPerMs += Math.max(0, USUAL_BEGINS_PER_MS - this.#beginsPerMs) * FORGETTING.rate;
    }
  }
}
