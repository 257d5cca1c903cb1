import { randomUUID } from "node:crypto";
import { BoundedMap } from "../core/bounded-map.ts";
import type { Clock } from "../core/clock.ts";
import type { Failure, FailureCode } from "../core/failure.ts";
import type { LimitFacts, LimitState, RefusedRequests } from "../core/limiter.ts";
import type { Principal } from "../core/principal.ts";
import { sizeOf, toBucketLevel, UNITS } from "./bucket.ts";
import type { BucketLevel, RateDecision, RateStore, RateSubject, SubjectLevels } from "./rates.ts";
import { toRateFailure } from "./refusals.ts";

/** Limit of kept subjects. The least recently updated are evicted, and then count as full. */
const MAX_SUBJECTS = 10_000;
/** Rounding error of doubles when a level is extrapolated. */
const LOST_BY_ROUNDING = 1e-6;

type Kind = "requests" | "tokens";
type RateRefusal = Extract<RateDecision, { admitted: false }>;

/** Last known levels of buckets. */
export class KnownLevels {
  readonly #burstMs: number;
  readonly #known = new BoundedMap<string, { readonly levels: SubjectLevels; readonly atMs: number }>(MAX_SUBJECTS);

  constructor(burstMs: number) {
    this.#burstMs = burstMs;
  }

  note(levels: readonly SubjectLevels[], nowMs: number): void {
    for (const one of levels) this.#known.set(one.subject, { levels: one, atMs: nowMs });
  }

  /** Takes a request from each known level, until the next `note` replaces it. */
  spend(subjects: readonly RateSubject[], nowMs: number): void {
    const levels = subjects.map((subject): SubjectLevels => {
      const requests = this.#levelOf("requests", subject, nowMs);
      const spent = requests && { ...requests, level: requests.level - 1 };
      return { subject: subject.subject, requests: spent, tokens: this.last("tokens", subject.subject, nowMs) };
    });
    this.note(levels, nowMs);
  }

  /** For each kind of limit, the state of the subject with least left; of equal ones the first. */
  facts(subjects: readonly RateSubject[], nowMs: number): LimitFacts {
    return { requests: this.#tightest("requests", subjects, nowMs), tokens: this.#tightest("tokens", subjects, nowMs) };
  }

  /** The refusal of `tokens` by the subject with the longest wait; undefined when the known levels have enough. */
  tokenRefusal(subjects: readonly RateSubject[], tokens: number, nowMs: number): RateRefusal | undefined {
    let longest: RateRefusal | undefined;
    for (const subject of subjects) {
      const bucket = this.#levelOf("tokens", subject, nowMs);
      if (bucket === undefined) continue;
      const missing = Math.min(tokens, bucket.capacity) - bucket.level - LOST_BY_ROUNDING;
      const retryAfterMs = Math.ceil((missing * 60_000) / bucket.perMinute);
      if (retryAfterMs > (longest?.retryAfterMs ?? 0))
        longest = { admitted: false, subject: subject.subject, limit: "tokens", retryAfterMs, levels: [] };
    }
    return longest;
  }

  #tightest(kind: Kind, subjects: readonly RateSubject[], nowMs: number): LimitState | undefined {
    let tightest: LimitState | undefined;
    for (const subject of subjects) {
      const limit = kind === "requests" ? subject.requestsPerMinute : subject.tokensPerMinute;
      if (limit === undefined) continue;
      const state = toState(limit, this.#levelOf(kind, subject, nowMs));
      if (tightest === undefined || state.remaining / state.limit < tightest.remaining / tightest.limit)
        tightest = state;
    }
    return tightest;
  }

  /** Level extrapolated to now; undefined when unknown. */
  last(kind: Kind, subject: string, nowMs: number): BucketLevel | undefined {
    const known = this.#known.get(subject);
    const last = known?.levels[kind];
    if (known === undefined || last === undefined) return undefined;
    const gained = (Math.max(nowMs - known.atMs, 0) * last.perMinute) / 60_000;
    return { ...last, level: Math.min(last.level + gained, last.capacity) };
  }

  /** Level extrapolated to now; full when unknown. */
  #levelOf(kind: Kind, subject: RateSubject, nowMs: number): BucketLevel | undefined {
    const size = sizeOf(kind, subject, this.#burstMs);
    return this.last(kind, subject.subject, nowMs) ?? (size && toBucketLevel({ level: size.capacity, at: 0 }, size));
  }
}

function toState(limit: number, bucket: BucketLevel | undefined): LimitState {
  if (bucket === undefined) return { limit, remaining: limit, resetMs: 0 };
  const { level, capacity, perMinute } = bucket;
  const remaining = Math.min(Math.max(Math.floor(level + LOST_BY_ROUNDING), 0), limit);
  const resetMs = Math.max(Math.ceil(((capacity - level) * 60_000) / perMinute - LOST_BY_ROUNDING), 0);
  return { limit, remaining, resetMs };
}

export interface RequestRateOptions {
  readonly rates: RateStore;
  /** Receives the levels after each count. */
  readonly known: KnownLevels;
  /** The key, then its account; those without limits are omitted. */
  readonly subjectsOf: (principal: Principal) => readonly RateSubject[];
  /** Must equal that of `rates`. */
  readonly burstMs: number;
  readonly clock: Clock;
}

/** Failures that the caller caused. */
const WRONG: ReadonlySet<FailureCode> = new Set([
  "invalid_request",
  "request_too_large",
  "model_not_found",
  "not_found",
  "permission_denied",
  "stopped",
]);

/** Tolerance in time, and in requests: within it the store decides, by its clock. */
const EARLY_MS = 5;
const EARLY_REQUESTS = 0.1;

/** Rounding error of doubles when a level is extrapolated. */
const ROUNDING = 1e-6;

/** Counts refused requests, and refuses requests of exhausted keys without a call of the store. */
export function createRequestRate(options: RequestRateOptions): RefusedRequests {
  const { rates, known, subjectsOf, burstMs, clock } = options;

  const count = async (subjects: readonly RateSubject[]): Promise<void> => {
    const id = randomUUID();
    const decision = await rates.take({ id, subjects, tokens: 0 });
    if (!decision.admitted) return;
    known.note(decision.levels, clock.monotonic());
    await rates.release({ id, subjects, reservedTokens: 0, usedTokens: 0, usedRequests: 1 });
  };

  /** Time until a request is available; 0 when one is, or when unknown. */
  const waitMs = (limits: RateSubject, nowMs: number): number => {
    const size = sizeOf("requests", limits, burstMs);
    const last = known.last("requests", limits.subject, nowMs);
    // The known level belongs to an earlier limit, so the store decides.
    if (size === undefined || last?.perMinute !== size.perMinute || last.capacity !== size.capacity / UNITS) return 0;
    const perMs = size.perMinute / 60_000;
    const missing = 1 - last.level;
    return missing <= Math.min(EARLY_MS * perMs, EARLY_REQUESTS) ? 0 : Math.ceil(missing / perMs - ROUNDING);
  };

  return {
    countRefused(principal, { code }: Failure) {
      if (!WRONG.has(code)) return;
      // The request has ended, so it takes no concurrency unit.
      const subjects = subjectsOf(principal)
        .filter(({ requestsPerMinute }) => requestsPerMinute !== undefined)
        .map((subject) => ({ ...subject, concurrentRequests: undefined }));
      if (subjects.length === 0) return;
      // Counted before the store answers, because the next request may arrive earlier. Stays counted even if the store refuses.
      known.spend(subjects, clock.monotonic());
      count(subjects).catch(() => undefined);
    },

    requireRequestRate(principal) {
      const subjects = subjectsOf(principal);
      const nowMs = clock.monotonic();
      let longest: { readonly subject: string; readonly retryAfterMs: number } | undefined;
      for (const limits of subjects) {
        const retryAfterMs = waitMs(limits, nowMs);
        if (retryAfterMs > (longest?.retryAfterMs ?? 0)) longest = { subject: limits.subject, retryAfterMs };
      }
      if (longest === undefined) return;
      const refusal = { admitted: false, limit: "requests", levels: [], ...longest } as const;
      throw toRateFailure(refusal, { id: "", subjects, tokens: 0 }, known.facts(subjects, nowMs));
    },
  };
}
