import { randomUUID } from "node:crypto";
import { BoundedMap } from "../core/bounded-map.ts";
import type { Clock } from "../core/clock.ts";
import type { Failure, FailureCode } from "../core/failure.ts";
import type { LimitFacts, LimitState, RefusedRequests } from "../core/limiter.ts";
import type { Principal } from "../core/principal.ts";
import { sizeOf, toBucketLevel, UNITS } from "./bucket.ts";
import type { BucketLevel, RateStore, RateSubject, SubjectLevels } from "./rates.ts";
import { toRateFailure } from "./refusals.ts";

/** Beyond that, those not heard of for longest are taken to be full. */
const MAX_SUBJECTS = 10_000;
/** What doubles lose when a level is carried forward. */
const LOST_BY_ROUNDING = 1e-6;

type Kind = "requests" | "tokens";

/** The levels of buckets as this process last heard of them. */
export class KnownLevels {
  readonly #burstMs: number;
  readonly #known = new BoundedMap<string, { readonly levels: SubjectLevels; readonly atMs: number }>(MAX_SUBJECTS);

  constructor(burstMs: number) {
    this.#burstMs = burstMs;
  }

  note(levels: readonly SubjectLevels[], nowMs: number): void {
    for (const one of levels) this.#known.set(one.subject, { levels: one, atMs: nowMs });
  }

  /** One request less for each of these, until more is heard. */
  spend(subjects: readonly RateSubject[], nowMs: number): void {
    const levels = subjects.map((subject): SubjectLevels => {
      const requests = this.#levelOf("requests", subject, nowMs);
      const spent = requests && { ...requests, level: requests.level - 1 };
      return { subject: subject.subject, requests: spent, tokens: this.last("tokens", subject.subject, nowMs) };
    });
    this.note(levels, nowMs);
  }

  /** Of each kind of limit the state of the subject that is nearer to its end; of two that are as near, the first. */
  facts(subjects: readonly RateSubject[], nowMs: number): LimitFacts {
    return { requests: this.#tightest("requests", subjects, nowMs), tokens: this.#tightest("tokens", subjects, nowMs) };
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

  /** Carried forward to this moment; undefined when nothing is known. */
  last(kind: Kind, subject: string, nowMs: number): BucketLevel | undefined {
    const known = this.#known.get(subject);
    const last = known?.levels[kind];
    if (known === undefined || last === undefined) return undefined;
    const gained = (Math.max(nowMs - known.atMs, 0) * last.perMinute) / 60_000;
    return { ...last, level: Math.min(last.level + gained, last.capacity) };
  }

  /** Full when nothing is known. */
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
  /** Is told what was counted. */
  readonly known: KnownLevels;
  /** The key first, then its account; those without any limit are left out. */
  readonly subjectsOf: (principal: Principal) => readonly RateSubject[];
  /** As that of `rates`. */
  readonly burstMs: number;
  readonly clock: Clock;
}

/** The failures of requests that are wrong, whatever state the gateway is in. */
const WRONG: ReadonlySet<FailureCode> = new Set([
  "invalid_request",
  "request_too_large",
  "model_not_found",
  "permission_denied",
]);

/** A request that comes this little too early, or that little of a request, is left to the store and its clock. */
const EARLY_MS = 5;
const EARLY_REQUESTS = 0.1;

/** What doubles lose when a level is carried forward. */
const ROUNDING = 1e-6;

/** What refused requests take of the request rate, and what it refuses without asking the store. */
export function createRequestRate(options: RequestRateOptions): RefusedRequests {
  const { rates, known, subjectsOf, burstMs, clock } = options;

  const count = async (subjects: readonly RateSubject[]): Promise<void> => {
    const id = randomUUID();
    const decision = await rates.take({ id, subjects, tokens: 0 });
    if (!decision.admitted) return;
    known.note(decision.levels, clock.monotonic());
    await rates.release({ id, subjects, reservedTokens: 0, usedTokens: 0, usedRequests: 1 });
  };

  /** When a request is there again; 0 when there is one now, or when that is not known. */
  const waitMs = (limits: RateSubject, nowMs: number): number => {
    const size = sizeOf("requests", limits, burstMs);
    const last = known.last("requests", limits.subject, nowMs);
    // A limit that was changed is looked up again.
    if (size === undefined || last?.perMinute !== size.perMinute || last.capacity !== size.capacity / UNITS) return 0;
    const perMs = size.perMinute / 60_000;
    const missing = 1 - last.level;
    return missing <= Math.min(EARLY_MS * perMs, EARLY_REQUESTS) ? 0 : Math.ceil(missing / perMs - ROUNDING);
  };

  return {
    countRefused(principal, { code }: Failure) {
      if (!WRONG.has(code)) return;
      // Takes no place: it is over.
      const subjects = subjectsOf(principal)
        .filter(({ requestsPerMinute }) => requestsPerMinute !== undefined)
        .map((subject) => ({ ...subject, concurrentRequests: undefined }));
      if (subjects.length === 0) return;
      // At once: the next request may be there before the store has answered. What it does not admit stays counted here.
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
