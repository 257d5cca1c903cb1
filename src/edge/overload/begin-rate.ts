import type { Progress } from "./under-way.ts";

/** How busy the event loop may be: with more, everything waits. */
const TARGET = 0.95;
/** So many are begun in a second as long as nothing is known. */
const UNKNOWN_PER_SECOND = 1_000;
/** The event loop is late only when it was in each of so many windows: a burst passes. */
const STANDING = 3;
/** So many must be under way before it is learnt what one of them takes. */
const ENOUGH = 16;
/** With less than this nothing is at stake. */
const RELAXED = 0.4;
/** The room there is, or what is missing of it, is used up in so long: with nothing at stake, and otherwise. */
const QUICKLY_MS = 250;
const CAREFULLY_MS = 1_000;
/** However late the event loop is, at least this share of those that end is begun anew: nobody waits for long. */
const LEAST_SHARE = 0.5;
/** What a loop that never sleeps counts as: the more there is to do in each of its turns, the less every event costs. */
const BUSY = 0.9;
/** A turn of the event loop may take so long; what it is later than that counts as this part of being busy. */
const USUAL_LATE_MS = 5;
const TOO_LATE_MS = 50;
/** How much a window counts in what one completion takes, and in the usual rate. */
const WEIGHT = 0.15;
const USUAL_WEIGHT = 0.05;
/** What is left of what is known after a window in which nothing was to be learnt, and what counts as nothing known. */
const FORGETTING = 0.998;
const NOTHING = 1e-5;
/** A window's length. */
export const WINDOW_MS = 100;

/** What is known at the end of a window of a tenth of a second. */
export interface LoadWindow extends Progress {
  /** The share of it in which the event loop was busy: 0 to 1. */
  readonly busyShare: number;
  /** How late the event loop is with what it has to do, less the time that other programs took. */
  readonly lateMs: number;
}

/**
 * How many completions may be begun in a second: as many as end, and as many more as the event loop has room for, or less
 * when it has none. A completion takes most of its time after it has been begun, so those without content count as what
 * the others take.
 */
export class BeginRate {
  #perMs = UNKNOWN_PER_SECOND / 1000;
  #usualPerMs = this.#perMs;
  /** How many may be begun now. */
  #leave = this.#perMs * QUICKLY_MS;
  #atMs = 0;
  /** The share of the event loop that one completion with content takes; 0 as long as nobody knows. */
  #each = 0;
  /** The loads of the latest windows. */
  #loads: readonly number[] = [];

  /** How long it takes to begin so many, as it went during the last seconds. */
  usualMs(count: number): number {
    return count / this.#usualPerMs;
  }

  /** How long it takes to begin so many, as far as that can be counted on. */
  likelyMs(count: number): number {
    return count / Math.min(this.#usualPerMs, this.#perMs);
  }

  /** Whether one may be begun now; it counts as begun. Leave that was not used for a quarter of a second is lost. */
  take(nowMs: number): boolean {
    this.#leave = Math.min(this.#leave + (nowMs - this.#atMs) * this.#perMs, Math.max(this.#perMs * QUICKLY_MS, 1));
    this.#atMs = nowMs;
    if (this.#leave < 1) return false;
    this.#leave -= 1;
    return true;
  }

  /** For so long nothing was to be learnt: what is known counts less. */
  forget(ms: number): void {
    if (this.#each > 0) this.#each = Math.max(NOTHING, this.#each * FORGETTING ** (ms / WINDOW_MS));
  }

  /** A window has ended. */
  learn(window: LoadWindow): void {
    const { busyShare, lateMs, started, starting } = window;
    const load = this.#standing(busyShare * BUSY + Math.max(0, lateMs - USUAL_LATE_MS) / TOO_LATE_MS);
    // The more there are without content, the more of the time was spent on beginning them.
    const weight = this.#each === 0 ? 1 : WEIGHT * (started / (started + starting));
    if (started >= ENOUGH) this.#each += (Math.min(load, 1) / started - this.#each) * weight;
    else if (load < RELAXED) this.forget(WINDOW_MS);
    this.#perMs = Math.max(this.#perMsAfter(load, window), 0);
    // Without that limit it would be long until an idle process knows that it is not idle any more.
    const perMs = Math.min(this.#perMs, UNKNOWN_PER_SECOND / 1000);
    this.#usualPerMs += (perMs - this.#usualPerMs) * USUAL_WEIGHT;
  }

  #perMsAfter(load: number, { started, starting, firstContentMs, wholeMs }: LoadWindow): number {
    if (this.#each <= NOTHING) return UNKNOWN_PER_SECOND / 1000;
    const underWay = started + starting;
    const endPerMs = underWay / Math.max(wholeMs, WINDOW_MS);
    // How many more there will be with content at the same time, if those under way remain as many.
    const coming = underWay * Math.max(0, 1 - firstContentMs / Math.max(wholeMs, 1)) - started;
    const room = (TARGET - load) / this.#each - coming;
    const more = room / (load + coming * this.#each < RELAXED ? QUICKLY_MS : CAREFULLY_MS);
    return endPerMs + Math.max(more, -LEAST_SHARE * endPerMs);
  }

  /** The least load of the latest windows. */
  #standing(load: number): number {
    this.#loads = [...this.#loads.slice(1 - STANDING), load];
    return Math.min(...this.#loads);
  }
}
