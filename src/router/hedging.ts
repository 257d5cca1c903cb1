import { BoundedMap } from "../core/bounded-map.ts";
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

/** What one account has of the latest WINDOW requests. */
interface Share {
  requests: number;
  /** Hedges that started, and those that were permitted and have not started yet. */
  hedges: number;
}

/** One of the latest requests: its account, and the accounts of hedges that started between it and the next one. */
interface Counted {
  readonly accountId: string;
  readonly hedged: string[];
}

/** The hedges of one name, and the bound of their share: of all requests, and of each account's. */
export class Hedging {
  readonly counts: HedgeCounts = { started: 0, won: 0, refused: 0 };
  readonly #latest: Counted[] = [];
  #next = 0;
  readonly #shares = new Map<string, Share>();
  /** Hedges of all accounts, as `Share.hedges`. */
  #hedges = 0;

  /** Counts a request. */
  count(accountId: string): void {
    const oldest = this.#latest[this.#next];
    this.#latest[this.#next] = { accountId, hedged: [] };
    this.#next = (this.#next + 1) % WINDOW;
    this.#change(accountId, { requests: 1, hedges: 0 });
    if (oldest === undefined) return;
    this.#change(oldest.accountId, { requests: -1, hedges: 0 });
    for (const hedged of oldest.hedged) this.#change(hedged, { requests: 0, hedges: -1 });
  }

  /**
   * Permits an account one more hedge, if that is within `budget`, a share of the latest WINDOW requests, and of the account's own,
   * or its only one. `start` or `giveUp` has to follow.
   */
  permit(budget: number, accountId: string): boolean {
    const { requests, hedges } = this.#shares.get(accountId) ?? { requests: 0, hedges: 0 };
    const isOver = this.#hedges + 1 > budget * this.#latest.length;
    if (isOver || hedges + 1 > Math.max(budget * requests, 1)) return false;
    this.#change(accountId, { requests: 0, hedges: 1 });
    return true;
  }

  /** The permitted hedge does not start. */
  giveUp(accountId: string): void {
    this.#change(accountId, { requests: 0, hedges: -1 });
  }

  /** The permitted hedge starts. */
  start(accountId: string): void {
    this.counts.started += 1;
    this.#latest.at(this.#next - 1)!.hedged.push(accountId);
  }

  #change(accountId: string, { requests, hedges }: Share): void {
    const share = this.#shares.get(accountId) ?? { requests: 0, hedges: 0 };
    share.requests += requests;
    share.hedges += hedges;
    this.#hedges += hedges;
    if (share.requests === 0 && share.hedges === 0) this.#shares.delete(accountId);
    else this.#shares.set(accountId, share);
  }
}

/** Samples kept, and how many are needed. */
const SAMPLES = 256;
const LEAST_SAMPLES = 50;
/** Accounts of which samples are kept apart; the one without a sample for the longest is forgotten. */
const MAX_ACCOUNTS = 32;
/** New samples after which percentiles are computed anew. */
const RENEWED_AFTER = 16;
/** No hedge starts sooner, however fast the model is. */
const LEAST_MS = 50;

/**
 * Times to the first content at one upstream model: an account with enough of them has its own, others those that they have met
 * together, so that the requests of one do not decide for all.
 */
export class ContentTimes {
  readonly #accounts = new BoundedMap<string, Percentiles>(MAX_ACCOUNTS);
  readonly #others = new Percentiles();

  add(ms: number, accountId: string): void {
    const own = this.#accounts.get(accountId) ?? new Percentiles();
    if (!own.isKnown) this.#others.add(ms);
    own.add(ms);
    this.#accounts.set(accountId, own);
  }

  /** In milliseconds, at least LEAST_MS; undefined while there are fewer than LEAST_SAMPLES. */
  percentile(percent: number, accountId: string): number | undefined {
    const own = this.#accounts.get(accountId);
    return (own?.isKnown === true ? own : this.#others).at(percent);
  }
}

/** Percentiles of the latest samples. */
class Percentiles {
  readonly #samples = new LatestSamples(SAMPLES);
  #sorted: readonly number[] = [];
  #sortedAt = -Infinity;

  get isKnown(): boolean {
    return this.#samples.count >= LEAST_SAMPLES;
  }

  add(ms: number): void {
    this.#samples.add(ms);
  }

  at(percent: number): number | undefined {
    if (!this.isKnown) return undefined;
    const { count } = this.#samples;
    if (count >= this.#sortedAt + RENEWED_AFTER) {
      this.#sorted = this.#samples.values().toSorted((one, other) => one - other);
      this.#sortedAt = count;
    }
    return Math.max(percentile(this.#sorted, percent), LEAST_MS);
  }
}
