/** How busy the event loop may be: with more, everything waits. */
const TARGET = 0.95;
/** As long as nothing is known, so many streams are taken to fill the event loop. */
const ASSUMED = 1_000;
/** So many must be under way before it is learnt what one of them takes. */
const ENOUGH = 16;
/** With less than this nothing is at stake. */
const RELAXED = 0.4;
/** The room there is, or what is missing of it, is used up in so long: with nothing at stake, and otherwise. */
const QUICKLY_MS = 250;
const CAREFULLY_MS = 1_000;
/** A turn of the event loop may take so long. */
const USUAL_LATE_MS = 15;
/** How much a window counts in what one completion takes, and in the usual rate. */
const WEIGHT = 0.15;
const USUAL_WEIGHT = 0.05;
/** So many are begun in a second, whatever happens. */
const LEAST_PER_SECOND = 10;
/** A window's length. */
export const WINDOW_MS = 100;

/** What is known at the end of a window of a tenth of a second. */
export interface LoadWindow {
  /** The share of it in which the event loop was busy: 0 to 1. */
  readonly busyShare: number;
  /** How late its end was: as long as the event loop took to come to it. */
  readonly lateMs: number;
  /** Completions under way that have content, or will have all of it at once. */
  readonly started: number;
  /** Those that have none yet. */
  readonly starting: number;
  /** How long completions take to their first content, on average. */
  readonly firstContentMs: number;
  /** How long they take in all; Infinity as long as none has ended. */
  readonly wholeMs: number;
}

/**
 * How many completions may be begun in a second: as many as end, and as many more as the event loop has room for, or less
 * when it has none. A completion takes most of its time after it has been begun, so those without content count as what
 * the others take.
 */
export class BeginRate {
  #perMs = ASSUMED / QUICKLY_MS;
  #usualPerMs = this.#perMs;
  /** How many may be begun now. */
  #leave = ASSUMED;
  #atMs = 0;
  /** The share of the event loop that one completion with content takes. */
  #each = TARGET / ASSUMED;

  /** What it was during the last seconds. */
  get usualPerSecond(): number {
    return this.#usualPerMs * 1000;
  }

  /** What can be counted on. */
  get perSecond(): number {
    return Math.min(this.#usualPerMs, this.#perMs) * 1000;
  }

  /** Whether one may be begun now; it counts as begun. Leave that was not used for a quarter of a second is lost. */
  take(nowMs: number): boolean {
    this.#leave = Math.min(this.#leave + (nowMs - this.#atMs) * this.#perMs, this.#perMs * QUICKLY_MS);
    this.#atMs = nowMs;
    if (this.#leave < 1) return false;
    this.#leave -= 1;
    return true;
  }

  /** A window has ended. */
  learn({ busyShare, lateMs, started, starting, firstContentMs, wholeMs }: LoadWindow): void {
    const load = busyShare + Math.max(0, lateMs - USUAL_LATE_MS) / WINDOW_MS;
    // The more there are without content, the more of the time was spent on beginning them.
    if (started >= ENOUGH) this.#each += (busyShare / started - this.#each) * WEIGHT * (started / (started + starting));
    else if (load < RELAXED) this.#each += (TARGET / ASSUMED - this.#each) * USUAL_WEIGHT;
    const endPerMs = (started + starting) / Math.max(wholeMs, 1);
    // Some will have ended before these have content.
    const coming = starting - Math.min(endPerMs * firstContentMs, started);
    const room = (TARGET - load) / this.#each - coming;
    const withinMs = load + coming * this.#each < RELAXED ? QUICKLY_MS : CAREFULLY_MS;
    this.#perMs = Math.max(LEAST_PER_SECOND / 1000, endPerMs + room / withinMs);
    this.#usualPerMs += (this.#perMs - this.#usualPerMs) * USUAL_WEIGHT;
  }
}
