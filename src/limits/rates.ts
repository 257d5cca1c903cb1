/** An API key, account or end user with its limits. Undefined means not limited. */
export interface RateSubject {
  /** `key:…`, `account:…` or `end_user:…`. */
  readonly subject: string;
  /** The account of the key or end user, or the account itself. Stores may group the subjects of a demand by it. */
  readonly accountId: string;
  readonly requestsPerMinute: number | undefined;
  readonly tokensPerMinute: number | undefined;
  readonly concurrentRequests: number | undefined;
}

/** The demand of a request. It is taken from all its subjects or from none. */
export interface RateDemand {
  /** Globally unique. */
  readonly id: string;
  /** The key, its account, the end user; those without limits are omitted. */
  readonly subjects: readonly RateSubject[];
  /** Worst case. If it exceeds the capacity of a bucket, a full bucket admits it and gives all its tokens. */
  readonly tokens: number;
}

/** Level of a token bucket after a decision. */
export interface BucketLevel {
  /** Capacity. */
  readonly capacity: number;
  /** Negative for a debt. */
  readonly level: number;
  readonly perMinute: number;
}

/** Buckets of a subject after a decision. */
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
      /** Subject and limit with the longest wait. */
      readonly subject: string;
      readonly limit: RateLimit;
      /** Wait before a retry; an estimate for concurrency. */
      readonly retryAfterMs: number;
      readonly levels: readonly SubjectLevels[];
    };

/** Release of an admitted request. */
export interface RateRelease {
  readonly id: string;
  /** The subjects of its demand. */
  readonly subjects: readonly RateSubject[];
  /** The tokens of its demand. */
  readonly reservedTokens: number;
  readonly usedTokens: number;
  /** 0: the request was never begun, and is given back too. Default: 1. */
  readonly usedRequests?: 0 | 1;
}

/**
 * A store of rates and concurrency: this process, Redis or the database. Decisions are atomic among all processes that share it, by
 * the store's clock. Rejects with a RateStoreError within a bounded time when the store is unavailable; concurrency units that were
 * taken all the same expire.
 */
export interface RateStore {
  take(demand: RateDemand): Promise<RateDecision>;
  /** Call it once: a second release would change the tokens again. */
  release(release: RateRelease): Promise<void>;
  /**
   * Renews the concurrency units of requests in flight for another LEASE_MS, and the membership of this process. Returns the
   * number of processes that share the state, at least 1.
   */
  renew(renewal: { readonly replica: string; readonly held: readonly Held[] }): Promise<number>;
  close(): Promise<void>;
}

/** A concurrency unit that a request in flight holds at a subject. */
export interface Held {
  readonly id: string;
  readonly subject: string;
  readonly accountId: string;
}

/** Lease of a concurrency unit, after which the units of a dead process are free again. */
export const LEASE_MS = 30_000;
/** Interval of renewals. */
export const RENEW_MS = 10_000;

/**
 * Why the store of rates has not decided. `disconnected`: not connected; `late`: no answer in time; `busy`: too many unanswered
 * commands; `error`: an error as the answer (Redis: READONLY, OOM, …).
 */
export type RateStoreFault = "disconnected" | "late" | "busy" | "error";

/** What is unavailable: the whole store, or for some accounts one of its nodes while others answer. */
export type RateStoreScope = "store" | "node";

/** The store of rates is unavailable. */
export class RateStoreError extends Error {
  override readonly name = "RateStoreError";
  readonly fault: RateStoreFault;
  readonly scope: RateStoreScope;

  /** `fault`: default `error`; `scope`: default `store`. */
  constructor(
    message: string,
    {
      fault = "error",
      scope = "store",
      ...options
    }: ErrorOptions & { readonly fault?: RateStoreFault; readonly scope?: RateStoreScope } = {},
  ) {
    super(message, options);
    this.fault = fault;
    this.scope = scope;
  }
}
