import { BoundedMap } from "../core/bounded-map.ts";
import { LatestSamples, percentile } from "./latest-samples.ts";

/** Requests over which the share of hedged ones is bounded. */
const WINDOW = 1_000;

/** Counts of hedges for one requested name, in this process. */
export interface HedgeCounts {
  started: number;
  /** Hedges with content before the first attempt. */
  won: number;
  /** Hedges that did not start because of the budget. */
  refused: number;
}

/** Requests and hedges of one account among the latest WINDOW requests. */
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

/** The hedges of one requested name. Bounds their share of all requests, and of each account's requests. */
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
   * Permits an account one more hedge if the share of hedges stays within `budget`, both of the latest WINDOW requests and of the
   * account's requests among them; one hedge per account is always within its own share. Call `start` or `giveUp` afterwards.
   */
  permit(budget: number, accountId: string): boolean {
    const { requests, hedges } = this.#shares.get(accountId) ?? { requests: 0, hedges: 0 };
    const isOver = this.#hedges + 1 > budget * this.#latest.length;
    if (isOver || hedges + 1 > Math.max(budget * requests, 1)) return false;
    this.#change(accountId, { requests: 0, hedges: 1 });
    return true;
  }

  /** Call it when a permitted hedge does not start. */
  giveUp(accountId: string): void {
    this.#change(accountId, { requests: 0, hedges: -1 });
  }

  /** Call it when a permitted hedge starts. */
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

/** Number of samples that are kept, and that a percentile needs. */
const SAMPLES = 256;
const LEAST_SAMPLES = 50;
/** Accounts with samples of their own; the account without a new sample for the longest is evicted. */
const MAX_ACCOUNTS = 32;
/** New samples after which percentiles are recomputed. */
const RENEWED_AFTER = 16;
/** Shortest time until a hedge by percentile, even for a faster model. */
const LEAST_MS = 50;

/**
 * Times to the first content at one upstream model. An account with enough samples has its own percentiles. The other accounts
 * share percentiles, so that one account's requests do not decide for all.
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

  /** A percentile in milliseconds, at least LEAST_MS; undefined with fewer than LEAST_SAMPLES samples. */
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
