import type { AttributionLimits } from "../core/attribution.ts";
import { type Clock, periodAt } from "../core/clock.ts";
import { Failure } from "../core/failure.ts";
import type { Demand, Limiter, LimitFacts, Reservation } from "../core/limiter.ts";
import type { Limits, Principal } from "../core/principal.ts";
import { type Attributed, attributedOf, hasBudgets } from "./attributed.ts";
import type { BudgetHold, BudgetStore } from "./budgets.ts";
import { type RateDemand, type RateStore, type RateSubject, RENEW_MS } from "./rates.ts";
import {
  toBudgetFailure,
  toNamelessFailure,
  toRateFailure,
  toUncheckedFailure,
  toUnpricedFailure,
} from "./refusals.ts";
import { createRequestRate, KnownLevels } from "./request-rate.ts";

export interface LimiterOptions {
  /** Closed by the limiter's owner, not by the limiter. */
  readonly rates: RateStore;
  readonly budgets: BudgetStore;
  /** Money spent in a period, such as `2026-11`, and held for completions in flight, by each subject in the given order. */
  readonly spending: (subjects: readonly string[], period: string) => Promise<readonly Taken[]>;
  /** Returns the defaults of account limits in force, per field: the same object until they change. */
  readonly defaults: () => Limits;
  /** Must equal that of `rates`. */
  readonly burstMs: number;
  readonly clock: Clock;
  /** Unique ID of this process among those that share the state. */
  readonly replicaId: string;
  /** Random number from 0 to 1. Default: Math.random. */
  readonly random?: () => number;
}

interface Taken {
  readonly spentMicroUsd: number;
  readonly heldMicroUsd: number;
  /** Own limit of an end user or a session. Default: the limit of its key. */
  readonly limitMicroUsd?: number | undefined;
}

/** Core's limiter with a method that stops the renewals of leases. */
export interface OwnedLimiter extends Limiter {
  close(): void;
}

const NO_FACTS: LimitFacts = { requests: undefined, tokens: undefined };

/**
 * Checks rates first, then budgets. A request that a budget refuses counts as a request without tokens. A concurrency unit is held
 * from the reservation to its release. For a principal without limits no store is called.
 */
export function createLimiter(options: LimiterOptions): OwnedLimiter {
  const { rates, budgets, spending, defaults, burstMs, clock, replicaId, random = Math.random } = options;
  const known = new KnownLevels(burstMs);
  const limitedOf = rememberLimited(defaults);
  const requestRate = createRequestRate({ rates, known, subjectsOf: (of) => limitedOf(of).subjects, burstMs, clock });
  const places = new ConcurrencyLeases({ rates, clock, replica: replicaId, random });

  const takeRates = async (demand: RateDemand, limited: Limited): Promise<LimitFacts> => {
    if (demand.subjects.length === 0) return NO_FACTS;
    const decision = await rates.take(demand).catch((reason: unknown) => {
      throw new Failure("overloaded", "Rate limits cannot be checked at the moment. Try again soon.", {
        unavailable: "rates",
        cause: reason,
      });
    });
    const nowMs = clock.monotonic();
    // The reported limits are those of the key and its account; the end user's levels come after these.
    const { subjects } = limited;
    known.note(decision.levels.slice(0, subjects.length), nowMs);
    const facts = known.facts(subjects, nowMs);
    if (!decision.admitted) throw toRateFailure(decision, demand, facts);
    return facts;
  };

  /** Releases without waiting. After a failure, concurrency units expire with their leases, and tokens return with the refill. */
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
      .hold({ id, holds, amountMicroUsd, lastsMs, replica: replicaId, ...(extended && { extends: true }) })
      .catch((reason: unknown) => {
        // The hold may exist although the call failed. An extension ends with its hold.
        if (extended !== true) budgets.cancel(id).catch(() => undefined);
        throw toUncheckedFailure(reason, facts);
      });
    if (!decision.admitted) throw toBudgetFailure(decision, { amountMicroUsd, nowMs: clock.now(), limits: facts });
  };

  return {
    async reserve(demand): Promise<Reservation> {
      const limited = limitedOf(demand.principal);
      const failure = refusalOf(demand, limited);
      if (failure !== undefined) {
        requestRate.countRefused(demand.principal, failure);
        throw failure;
      }
      const attributed = findAttributed(demand, limited);
      const subjects = attributed === undefined ? limited.subjects : [...limited.subjects, ...attributed.subjects];
      const holds = attributed === undefined ? limited.holds : [...limited.holds, ...attributed.holds];
      const rateDemand: RateDemand = { id: demand.completionId, subjects, tokens: demand.tokens };
      const facts = await takeRates(rateDemand, limited);
      try {
        if (holds.length > 0) await holdMoney(demand, { holds, facts });
      } catch (reason) {
        // After `budget_spent` the request stays counted, so that the rate limit applies to requests beyond a spent budget.
        giveBack(rateDemand, 0, reason instanceof Failure && reason.code === "budget_spent" ? 1 : 0);
        throw reason;
      }
      places.add(rateDemand.id, subjects, demand.lastsMs);
      let released = false;
      return {
        facts,
        ...(attributed !== undefined && {
          budgets: attributed.holds.map(({ subject, period }) => ({ subject, period })),
        }),
        release(usedTokens) {
          if (released) return;
          released = true;
          places.drop(rateDemand.id);
          giveBack(rateDemand, usedTokens, 1);
        },
        extend: (costMicroUsd) => holdMoney({ ...demand, costMicroUsd }, { holds, facts, extended: true }),
      };
    },
    async preview(demand) {
      const { principal, tokens, costMicroUsd, completionId: id } = demand;
      const limited = limitedOf(principal);
      const failure = refusalOf(demand, limited);
      if (failure !== undefined) return [failure];
      const { subjects } = limited;
      const holds = [...limited.holds, ...(findAttributed(demand, limited)?.holds ?? [])];
      const nowMs = clock.monotonic();
      const limits = known.facts(subjects, nowMs);
      const tooMany = known.tokenRefusal(subjects, tokens, nowMs);
      const ofRates = tooMany === undefined ? [] : [toRateFailure(tooMany, { id, subjects, tokens }, limits)];
      const amountMicroUsd = costMicroUsd ?? 0;
      if (holds.length === 0 || amountMicroUsd === 0) return ofRates;
      const takenOf = async ({ subject, limitMicroUsd, period = "month" }: BudgetHold) => {
        const [taken] = await spending([subject], periodAt(clock.now(), period));
        const takenMicroUsd = taken!.spentMicroUsd + taken!.heldMicroUsd;
        return { subject, period, takenMicroUsd, limitMicroUsd: taken!.limitMicroUsd ?? limitMicroUsd };
      };
      const taken = await Promise.all(holds.map(takenOf)).catch((reason: unknown) => {
        throw toUncheckedFailure(reason, limits);
      });
      const full = taken.find(({ takenMicroUsd, limitMicroUsd }) => takenMicroUsd + amountMicroUsd > limitMicroUsd);
      if (full === undefined) return ofRates;
      const facts = { amountMicroUsd, nowMs: clock.now(), limits };
      return [...ofRates, toBudgetFailure({ admitted: false, ...full }, facts)];
    },
    hasBudget: (principal) => limitedOf(principal).hasBudget,
    peek: (principal) => known.facts(limitedOf(principal).subjects, clock.monotonic()),
    ...requestRate,
    close: () => places.close(),
  };
}

interface HeldPlacesOptions {
  readonly rates: RateStore;
  readonly clock: Clock;
  /** ID of this process among those that share the state. */
  readonly replica: string;
  /** Random number from 0 to 1. */
  readonly random: () => number;
}

/** Renews the leases of this process and of its requests' concurrency units every ten seconds. */
class ConcurrencyLeases {
  readonly #options: HeldPlacesOptions;
  readonly #held = new Map<string, { readonly subjects: readonly RateSubject[]; readonly untilMs: number }>();
  #stopTimer: (() => void) | undefined;
  #closed = false;

  /** Renews at once, because other replicas divide limits by the number of replicas. */
  constructor(options: HeldPlacesOptions) {
    this.#options = options;
    void this.#renew();
  }

  /** Renews the units of a request until `drop`, for `lastsMs` at most. */
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
    // A failed renewal is repeated well before the leases end.
    await rates.renew({ replica, held }).catch(() => undefined);
    if (this.#closed) return;
    this.#stopTimer = clock.after(RENEW_MS * (0.9 + random() * 0.1), () => void this.#renew());
  }
}

function holdsPlaces({ concurrentRequests }: RateSubject): boolean {
  return concurrentRequests !== undefined;
}

/** The limits that are set for a principal's key or account. */
interface Limited {
  readonly subjects: readonly RateSubject[];
  readonly holds: readonly BudgetHold[];
  /** Limits of its end users and sessions. */
  readonly attribution: AttributionLimits | undefined;
  /** Whether any of its requests may be under a budget. */
  readonly hasBudget: boolean;
}

/** The failure of a demand that is refused independently of earlier use: without an end user, or without a known price. */
function refusalOf({ attribution, costMicroUsd }: Demand, limited: Limited): Failure | undefined {
  if (limited.attribution?.requiresEndUser === true && attribution?.endUser === undefined) return toNamelessFailure();
  if (limited.hasBudget && costMicroUsd === undefined) return toUnpricedFailure(limited.holds[0]?.subject);
  return undefined;
}

/** Limits of the end user and the session of a demand; undefined when the key has no such limits or the demand names neither. */
function findAttributed({ principal, attribution }: Demand, limited: Limited): Attributed | undefined {
  if (limited.attribution === undefined || attribution === undefined) return undefined;
  const found = attributedOf(principal, limited.attribution, attribution);
  return found.subjects.length + found.holds.length === 0 ? undefined : found;
}

/**
 * Finds the limits of a principal, with the account `defaults` per field. Results are cached per principal object, which all
 * requests of a key share until the key is read again. The cache is cleared when the defaults change.
 */
export function rememberLimited(defaults: () => Limits): (principal: Principal) => Limited {
  let known = new WeakMap<Principal, Limited>();
  let lastDefaults = defaults();
  return (principal) => {
    const current = defaults();
    if (current !== lastDefaults) {
      known = new WeakMap();
      lastDefaults = current;
    }
    let limited = known.get(principal);
    if (limited === undefined) {
      const subjects = subjectsOf(principal, current);
      const holds = toHolds(subjects);
      const { attributionLimits: attribution, accountId } = principal;
      limited = {
        subjects: toRateSubjects(subjects, accountId),
        holds,
        attribution,
        hasBudget: holds.length > 0 || (attribution !== undefined && hasBudgets(attribution)),
      };
      known.set(principal, limited);
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
