import type { Clock } from "../core/clock.ts";
import { Failure } from "../core/failure.ts";
import type { Demand, Limiter, LimitFacts, Reservation } from "../core/limiter.ts";
import type { Limits, Principal } from "../core/principal.ts";
import type { BudgetHold, BudgetStore } from "./budgets.ts";
import { type RateDemand, type RateStore, type RateSubject, RENEW_MS } from "./rates.ts";
import { toBudgetFailure, toRateFailure, toUncheckedFailure, toUnpricedFailure } from "./refusals.ts";
import { createRequestRate, KnownLevels } from "./request-rate.ts";

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

interface HeldPlacesOptions {
  readonly rates: RateStore;
  readonly clock: Clock;
  /** This process among those that share the state. */
  readonly replica: string;
  /** Gives 0 to 1. */
  readonly random: () => number;
}

/** The places of this process's requests under way: says every ten seconds that they are still there, and so is it. */
class ConcurrencyLeases {
  readonly #options: HeldPlacesOptions;
  readonly #held = new Map<string, { readonly subjects: readonly RateSubject[]; readonly untilMs: number }>();
  #stopTimer: (() => void) | undefined;
  #closed = false;

  /** Begins with a first word at once: the others divide by how many there are. */
  constructor(options: HeldPlacesOptions) {
    this.#options = options;
    void this.#renew();
  }

  /** From now on, until it is dropped, and for no longer than `lastsMs`. */
  add(id: string, subjects: readonly RateSubject[], lastsMs: number): void {
    if (!subjects.some(holdsPlaces)) return;
    const limited = subjects.filter(holdsPlaces);
    const untilMs = this.#options.clock.monotonic() + lastsMs;
    this.#held.set(id, { subjects: limited, untilMs });
  }

  drop(id: string): void {
    this.#held.delete(id);
  }

  close(): void {
    this.#closed = true;
    this.#stopTimer?.();
  }

  async #renew(): Promise<void> {
    const { rates, clock, replica, random } = this.#options;
    const nowMs = clock.monotonic();
    const held = [];
    for (const [id, { subjects, untilMs }] of this.#held) {
      if (untilMs <= nowMs) this.#held.delete(id);
      else for (const { subject, accountId } of subjects) held.push({ id, subject, accountId });
    }
    // What could not be said now is said again well before the leases end.
    await rates.renew({ replica, held }).catch(() => undefined);
    if (this.#closed) return;
    this.#stopTimer = clock.after(RENEW_MS * (0.9 + random() * 0.1), () => void this.#renew());
  }
}

function holdsPlaces({ concurrentRequests }: RateSubject): boolean {
  return concurrentRequests !== undefined;
}

/** What is limited for a principal: nothing that the key or its account is not limited in is in it. */
interface Limited {
  readonly subjects: readonly RateSubject[];
  readonly holds: readonly BudgetHold[];
}

/**
 * What is limited for whom, with the `defaults` of accounts, field by field. Works it out once for each principal: the same
 * one comes with all requests of a key, until the key is read again.
 */
export function rememberLimited(defaults: Limits): (principal: Principal) => Limited {
  const known = new WeakMap<Principal, Limited>();
  return (principal) => {
    let limited = known.get(principal);
    if (limited === undefined) {
      const subjects = subjectsOf(principal, defaults);
      known.set(
        principal,
        (limited = { subjects: toRateSubjects(subjects, principal.accountId), holds: toHolds(subjects) }),
      );
    }
    return limited;
  };
}

type Subjects = readonly (readonly [subject: string, limits: Limits])[];

/** The key and its account, each with the limits that apply to it. */
function subjectsOf(principal: Principal, defaults: Limits): Subjects {
  const { keyFamilyId, limits, accountId, accountLimits } = principal;
  const ofAccount: Limits = {
    requestsPerMinute: accountLimits.requestsPerMinute ?? defaults.requestsPerMinute,
    tokensPerMinute: accountLimits.tokensPerMinute ?? defaults.tokensPerMinute,
    concurrentRequests: accountLimits.concurrentRequests ?? defaults.concurrentRequests,
    monthlyBudgetMicroUsd: accountLimits.monthlyBudgetMicroUsd ?? defaults.monthlyBudgetMicroUsd,
  };
  return [
    [`key:${keyFamilyId}`, limits],
    [`account:${accountId}`, ofAccount],
  ];
}

function toRateSubjects(subjects: Subjects, accountId: string): RateSubject[] {
  return subjects
    .map(([subject, { requestsPerMinute, tokensPerMinute, concurrentRequests }]): RateSubject => {
      return { subject, accountId, requestsPerMinute, tokensPerMinute, concurrentRequests };
    })
    .filter(({ requestsPerMinute, tokensPerMinute, concurrentRequests }) =>
      [requestsPerMinute, tokensPerMinute, concurrentRequests].some((limit) => limit !== undefined),
    );
}

function toHolds(subjects: Subjects): BudgetHold[] {
  return subjects.flatMap(([subject, { monthlyBudgetMicroUsd }]) =>
    monthlyBudgetMicroUsd === undefined ? [] : [{ subject, limitMicroUsd: monthlyBudgetMicroUsd }],
  );
}
