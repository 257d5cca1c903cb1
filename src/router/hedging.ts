import { LatestSamples, percentile } from "./latest-samples.ts";

/** Requests over which the share of hedged ones is bounded. */
const WINDOW = 1_000;

/** What hedging has done for one name, in this process. */
export interface HedgeCounts {
  started: number;
  /** Hedges with content before the first attempt. */
  won: number;
  /** Hedges that did not start because of the budget. */
  refused: number;
}

/** The hedges of one name, and the bound of their share. */
export class Hedging {
  readonly counts: HedgeCounts = { started: 0, won: 0, refused: 0 };
  /** Hedges that started between each of the latest requests and the next one. */
  readonly #hedges = new Uint16Array(WINDOW);
  #requests = 0;
  #hedged = 0;
  /** Hedges that were permitted and have not started yet. */
  #permitted = 0;

  /** Counts a request. */
  count(): void {
    this.#requests += 1;
    const place = this.#requests % WINDOW;
    this.#hedged -= this.#hedges[place]!;
    this.#hedges[place] = 0;
  }

  /** Permits one more hedge, if that is within `budget`, a share of the latest WINDOW requests. `start` or `giveUp` has to follow. */
  permit(budget: number): boolean {
    if (this.#hedged + this.#permitted + 1 > budget * Math.min(this.#requests, WINDOW)) return false;
    this.#permitted += 1;
    return true;
  }

  /** The permitted hedge does not start. */
  giveUp(): void {
    this.#permitted -= 1;
  }

  /** The permitted hedge starts. */
  start(): void {
    this.#permitted -= 1;
    this.counts.started += 1;
    this.#hedged += 1;
    this.#hedges[this.#requests % WINDOW]! += 1;
  }
}

/** Samples kept, and how many are needed. */
const SAMPLES = 256;
const LEAST_SAMPLES = 50;
/** New samples after which percentiles are computed anew. */
const RENEWED_AFTER = 16;
/** No hedge starts sooner, however fast the model is. */
const LEAST_MS = 50;

/** Times to the first content at one upstream model. */
export class ContentTimes {
  readonly #samples = new LatestSamples(SAMPLES);
  #sorted: readonly number[] = [];
  #sortedAt = -Infinity;

  add(ms: number): void {
    this.#samples.add(ms);
  }

  /** In milliseconds, at least LEAST_MS; undefined while there are fewer than LEAST_SAMPLES. */
  percentile(percent: number): number | undefined {
    const { count } = this.#samples;
    if (count < LEAST_SAMPLES) return undefined;
    if (count >= this.#sortedAt + RENEWED_AFTER) {
      this.#sorted = this.#samples.values().toSorted((one, other) => one - other);
      this.#sortedAt = count;
    }
    return Math.max(percentile(this.#sorted, percent), LEAST_MS);
  }
}
