import type { Failure } from "./failure.ts";
import type { Principal } from "./principal.ts";

/** What a request may come to at most, taken before any upstream hears of it. */
export interface Demand {
  readonly principal: Principal;
  /** Names the reservation: unique for ever, and never the caller's choice. */
  readonly completionId: string;
  /** Prompt and answer together; 0 for a request that is no completion. */
  readonly tokens: number;
  /** By the dearest model of the plan; undefined when one of them has no price. */
  readonly costMicroUsd: number | undefined;
  /** How long the completion can last at most: nothing is held for longer than this. */
  readonly lastsMs: number;
}

/** What was taken for one completion. */
export interface Reservation {
  readonly facts: LimitFacts;
  /**
   * The completion is over: gives back its place, and the tokens that it did not use. To be called once, however it
   * ended. Money is settled with the ledger entry. Never fails: what cannot be given back ends by itself.
   */
  release(usedTokens: number): void;
  /**
   * Reserves more money for the same completion, for another attempt. Throws `budget_spent`, or `overloaded` when a budget
   * cannot be checked; what was reserved before stays so.
   */
  extend(costMicroUsd: number): Promise<void>;
}

/** One limit as its owner sees it: that of the key or of its account, whichever is nearer to its end. */
export interface LimitState {
  readonly limit: number;
  /** 0 or more. */
  readonly remaining: number;
  /** Until all of the limit is there again if nothing else is used. */
  readonly resetMs: number;
}

/** What a caller is told of its limits; absent where there is none. */
export interface LimitFacts {
  readonly requests: LimitState | undefined;
  readonly tokens: LimitState | undefined;
}

/** Requests that never become completions: they count against the request rate of the key and its account as well. */
export interface RefusedRequests {
  /**
   * Takes one request from the rate when the request was wrong: `invalid_request`, `request_too_large`, `model_not_found`
   * or `permission_denied`. Takes nothing where the rate is used up. Never fails.
   */
  countRefused(principal: Principal, failure: Failure): void;
  /**
   * Throws `rate_limited` when the request rate is used up as far as this process knows. Asks nobody: to be called before a
   * body is read or parsed.
   */
  requireRequestRate(principal: Principal): void;
}

/** Request and token rates, concurrency and budgets: of the key, and of the account with all its keys. */
export interface Limiter extends RefusedRequests {
  /**
   * Takes the whole demand or nothing. Throws `rate_limited` or `budget_spent`, saying which limit of what and with the
   * time to wait; `overloaded` when a budget cannot be checked; `permission_denied` when there is a budget and the cost is
   * not known.
   */
  reserve(demand: Demand): Promise<Reservation>;
  /** Whether a budget applies to the key or its account. */
  hasBudget(principal: Principal): boolean;
  /** The limits as this process last knew them. Asks nobody. */
  peek(principal: Principal): LimitFacts;
}
