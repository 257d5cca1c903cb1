import type { Attribution } from "./attribution.ts";
import type { Failure } from "./failure.ts";
import type { AttributedBudget } from "./ledger.ts";
import type { Principal } from "./principal.ts";

/** The worst case of a request, reserved before anything is sent to a provider. */
export interface Demand {
  readonly principal: Principal;
  /** `Call.attribution`. */
  readonly attribution?: Attribution | undefined;
  /** ID of the reservation: unique, and never chosen by the caller. */
  readonly completionId: string;
  /** Prompt and answer tokens; 0 for a request that is not a completion. */
  readonly tokens: number;
  /** Cost with the most expensive model of the plan; undefined when a model has no price. */
  readonly costMicroUsd: number | undefined;
  /** Longest duration of the completion: reservations expire after it. */
  readonly lastsMs: number;
}

/** The reservation of one completion. */
export interface Reservation {
  readonly facts: LimitFacts;
  /** Budgets of the end user and the session, for the ledger entry. Default: none. */
  readonly budgets?: readonly AttributedBudget[] | undefined;
  /**
   * Releases the concurrency lease and the unused tokens. Call it once at the end of the completion. Money is settled with
   * the ledger entry. Never throws: a lease that cannot be released expires.
   */
  release(usedTokens: number): void;
  /**
   * Reserves more money for another attempt of the same completion. Throws `budget_spent`, or `overloaded` when a budget cannot
   * be checked; the existing reservation stays.
   */
  extend(costMicroUsd: number): Promise<void>;
}

/** One limit as reported to the caller: of the key or of its account, whichever has less left. */
export interface LimitState {
  readonly limit: number;
  /** 0 or more. */
  readonly remaining: number;
  /** Time until the full limit is available again without further use. */
  readonly resetMs: number;
}

/** The limits as reported to the caller; undefined where there is none. */
export interface LimitFacts {
  readonly requests: LimitState | undefined;
  readonly tokens: LimitState | undefined;
}

/** Counts requests that never become completions against the request rate of the key and its account. */
export interface RefusedRequests {
  /**
   * Takes one request from the rate for a failure that the caller caused: `invalid_request`, `request_too_large`,
   * `model_not_found` or `permission_denied`. Takes nothing from an exhausted rate. Never fails.
   */
  countRefused(principal: Principal, failure: Failure): void;
  /**
   * Throws `rate_limited` when the request rate is exhausted as far as this process knows, without I/O. Call it before a body
   * is read.
   */
  requireRequestRate(principal: Principal): void;
}

/** Request and token rates, concurrency and budgets of keys, their end users and sessions, and accounts. */
export interface Limiter extends RefusedRequests {
  /**
   * Reserves the whole demand or nothing. Throws `rate_limited` or `budget_spent` that name the limit, its owner and the time
   * to wait; `overloaded` when a budget cannot be checked; `permission_denied` when a budget applies and the cost is unknown;
   * `invalid_request` when the key requires an end user and there is none.
   */
  reserve(demand: Demand): Promise<Reservation>;
  /**
   * The failures with which `reserve` would refuse the demand now: of token rates of the key and its account as last known to this
   * process, and of budgets. Takes nothing. Throws `overloaded` when a budget cannot be checked.
   */
  preview(demand: Demand): Promise<readonly Failure[]>;
  /** Whether a budget applies to the key, its account, or its end users or sessions, also for a request that names none. */
  hasBudget(principal: Principal): boolean;
  /** The limits as last known to this process, without I/O. */
  peek(principal: Principal): LimitFacts;
}
