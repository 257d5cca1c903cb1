import { BoundedMap } from "../core/bounded-map.ts";
import type { LimitFacts, LimitState } from "../core/limiter.ts";
import { sizeOf, toBucketLevel } from "./bucket.ts";
import type { BucketLevel, RateSubject, SubjectLevels } from "./rates.ts";

/** Beyond that, those not heard of for longest are taken to be full. */
const MAX_SUBJECTS = 10_000;
/** What doubles lose when a level is carried forward. */
const ROUNDING = 1e-6;

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
  const remaining = Math.min(Math.max(Math.floor(level + ROUNDING), 0), limit);
  const resetMs = Math.max(Math.ceil(((capacity - level) * 60_000) / perMinute - ROUNDING), 0);
  return { limit, remaining, resetMs };
}
