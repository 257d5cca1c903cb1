/** What is limited: an API key or an account, and how. Undefined means not limited. */
export interface RateSubject {
  /** `key:…` or `account:…`. */
  readonly subject: string;
  /** The account, or the key's: what a store may keep the subjects of one demand together by. */
  readonly accountId: string;
  readonly requestsPerMinute: number | undefined;
  readonly tokensPerMinute: number | undefined;
  readonly concurrentRequests: number | undefined;
}

/** One request, to be admitted by all of its subjects or by none. */
export interface RateDemand {
  /** Unique for ever. */
  readonly id: string;
  /** The key first, then its account; those without any limit are left out. */
  readonly subjects: readonly RateSubject[];
  /** The worst case. A bucket that could never hold as many gives all it has when it is full. */
  readonly tokens: number;
}

/** The level of one token bucket after a decision. */
export interface BucketLevel {
  /** How many it holds when full. */
  readonly capacity: number;
  /** May be negative: more was used than was reserved. */
  readonly level: number;
  readonly perMinute: number;
}

/** The buckets of one subject after a decision. */
export interface SubjectLevels {
  readonly subject: string;
  readonly requests: BucketLevel | undefined;
  readonly tokens: BucketLevel | undefined;
}

export type RateLimit = "requests" | "tokens" | "concurrency";

export type RateDecision =
  | { readonly admitted: true; readonly levels: readonly SubjectLevels[] }
  | {
      readonly admitted: false;
      /** The subject and the limit that keeps it out for longest. */
      readonly subject: string;
      readonly limit: RateLimit;
      /** Until it is worth trying again; for concurrency a guess. */
      readonly retryAfterMs: number;
      readonly levels: readonly SubjectLevels[];
    };

/** What a request that was admitted gives back when it is over. */
export interface RateRelease {
  readonly id: string;
  /** As they were in its demand. */
  readonly subjects: readonly RateSubject[];
  /** As in its demand. */
  readonly reservedTokens: number;
  readonly usedTokens: number;
  /** 0 gives the request itself back too: nothing of it was ever begun. Default: 1. */
  readonly usedRequests?: 0 | 1;
}

/**
 * The state of rates and concurrency: in this process, in Redis or in the database. Each method decides at one moment for all
 * who share the state, by the clock of whoever keeps it. Rejects with a RateStoreError within a bounded time when
 * the state cannot be reached; then nothing, or something that ends by itself, was taken.
 */
export interface RateStore {
  take(demand: RateDemand): Promise<RateDecision>;
  /** A second release of the same demand changes nothing but tokens; not called twice. */
  release(release: RateRelease): Promise<void>;
  /**
   * Says that these requests are still under way: their places are held for another LEASE_MS. Also counts this process
   * among those that share the state, and answers how many there are, at least 1.
   */
  renew(renewal: { readonly replica: string; readonly held: readonly Held[] }): Promise<number>;
  close(): Promise<void>;
}

/** A place that a request under way holds at one subject. */
export interface Held {
  readonly id: string;
  readonly subject: string;
  readonly accountId: string;
}

/** How long a place is held without a word of its holder: a process that is gone keeps nobody out for longer. */
export const LEASE_MS = 30_000;
/** How often the holders say that they are there. */
export const RENEW_MS = 10_000;

/** The state of rates cannot be reached. */
export class RateStoreError extends Error {
  override readonly name = "RateStoreError";
}
