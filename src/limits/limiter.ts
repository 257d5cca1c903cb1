import type { Clock } from "../core/clock.ts";
import { Failure } from "../core/failure.ts";
import type { Demand, LimitFacts, Limiter, Reservation } from "../core/limiter.ts";
import type { Limits } from "../core/principal.ts";
import type { BudgetHold, BudgetStore } from "./budgets.ts";
import { ConcurrencyLeases } from "./concurrency-leases.ts";
import { KnownLevels } from "./known-levels.ts";
import { rememberLimited } from "./limited.ts";
import type { RateDemand, RateStore } from "./rates.ts";
import { createRequestRate } from "./request-rate.ts";
import { toBudgetFailure, toRateFailure, toUncheckedFailure, toUnpricedFailure } from "./refusals.ts";

export interface LimiterOptions {
  /** Is closed with the limiter's owner, not with the limiter. */
  readonly rates: RateStore;
  readonly budgets: BudgetStore;
  /** Of an account, field by field, where it has none of its own. */
  readonly defaults: Limits;
  /** As that of `rates`. */
  readonly burstMs: number;
  readonly clock: Clock;
  /** This process among those that share the state; unique for ever. */
  readonly replicaId: string;
  /** Gives 0 to 1. Default: Math.random. */
  readonly random?: () => number;
}

/** Core's limiter, and the end of its renewals. */
export interface OwnedLimiter extends Limiter {
  close(): void;
}

const NO_FACTS: LimitFacts = { requests: undefined, tokens: undefined };

/**
 * Rates first, then money: what a budget refuses counts as a request and uses no tokens. A place is held from the reservation until
 * its release. Nothing is asked for a principal without limits.
 */
export function createLimiter(options: LimiterOptions): OwnedLimiter {
  const { rates, budgets, defaults, burstMs, clock, replicaId, random = Math.random } = options;
  const known = new KnownLevels(burstMs);
  const limitedOf = rememberLimited(defaults);
  const requestRate = createRequestRate({ rates, known, subjectsOf: (of) => limitedOf(of).subjects, burstMs, clock });
  const places = new ConcurrencyLeases({ rates, clock, replica: replicaId, random });

  const takeRates = async (demand: RateDemand): Promise<LimitFacts> => {
    if (demand.subjects.length === 0) return NO_FACTS;
    const decision = await rates.take(demand).catch((reason: unknown) => {
      throw new Failure("overloaded", "Rate limits cannot be checked at the moment. Try again soon.", {
        cause: reason,
      });
    });
    const nowMs = clock.monotonic();
    known.note(decision.levels, nowMs);
    const facts = known.facts(demand.subjects, nowMs);
    if (!decision.admitted) throw toRateFailure(decision, demand, facts);
    return facts;
  };

  /** What cannot be given back ends by itself: places with their leases, tokens as the bucket fills up. */
  const giveBack = ({ id, subjects, tokens }: RateDemand, usedTokens: number, usedRequests: 0 | 1): void => {
    if (subjects.length === 0) return;
    rates.release({ id, subjects, reservedTokens: tokens, usedTokens, usedRequests }).catch(() => undefined);
  };

  const holdMoney = async (
    demand: Demand,
    { holds, facts, extended }: { holds: readonly BudgetHold[]; facts: LimitFacts; extended?: true },
  ): Promise<void> => {
    const { completionId: id, costMicroUsd: amountMicroUsd = 0, lastsMs } = demand;
    if (holds.length === 0 || amountMicroUsd === 0) return;
    const decision = await budgets
      .hold({ id, holds, amountMicroUsd, lastsMs, ...(extended && { extends: true }) })
      .catch((reason: unknown) => {
        // It may have been held all the same. What extends a hold ends with it.
        if (extended !== true) budgets.cancel(id).catch(() => undefined);
        throw toUncheckedFailure(reason, facts);
      });
    if (!decision.admitted) throw toBudgetFailure(decision, { amountMicroUsd, nowMs: clock.now(), limits: facts });
  };

  return {
    async reserve(demand): Promise<Reservation> {
      const { subjects, holds } = limitedOf(demand.principal);
      if (holds[0] !== undefined && demand.costMicroUsd === undefined) {
        const failure = toUnpricedFailure(holds[0].subject);
        requestRate.countRefused(demand.principal, failure);
        throw failure;
      }
      const rateDemand: RateDemand = { id: demand.completionId, subjects, tokens: demand.tokens };
      const facts = await takeRates(rateDemand);
      try {
        if (holds.length > 0) await holdMoney(demand, { holds, facts });
      } catch (reason) {
        // The request stays counted where a budget is spent: else whoever goes on asking would be held by nothing.
        giveBack(rateDemand, 0, reason instanceof Failure && reason.code === "budget_spent" ? 1 : 0);
        throw reason;
      }
      places.add(rateDemand.id, subjects, demand.lastsMs);
      let released = false;
      return {
        facts,
        release(usedTokens) {
          if (released) return;
          released = true;
          places.drop(rateDemand.id);
          giveBack(rateDemand, usedTokens, 1);
        },
        extend: (costMicroUsd) => holdMoney({ ...demand, costMicroUsd }, { holds, facts, extended: true }),
      };
    },
    hasBudget: (principal) => limitedOf(principal).holds.length > 0,
    peek: (principal) => known.facts(limitedOf(principal).subjects, clock.monotonic()),
    ...requestRate,
    close: () => places.close(),
  };
}
