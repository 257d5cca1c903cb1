import type { Clock } from "../core/clock.ts";
import {
  add,
  type Bucket,
  type BucketSize,
  placesOf,
  refill,
  sizeOf,
  toBucketLevel,
  UNITS,
  unitsOf,
  waitMs,
} from "./bucket.ts";
import {
  type Held,
  LEASE_MS,
  type RateDecision,
  type RateDemand,
  type RateLimit,
  type RateRelease,
  type RateStore,
  type RateSubject,
  type SubjectLevels,
} from "./rates.ts";

/** A guess: nobody knows when a request under way will be over. */
const CONCURRENCY_RETRY_MS = 1000;

const KINDS = ["requests", "tokens"] as const;

/** What is kept of one key or account. Changed in place. */
export interface SubjectBook {
  requests: Bucket | undefined;
  tokens: Bucket | undefined;
  /** When the place of each request under way ends by itself; some may have ended. */
  readonly places: Map<string, number>;
  /** From then on it says no more than a missing one: its buckets are full and no place is held. */
  idleAt: number;
}

/** The moment of a decision, by the clock of whoever keeps the state. */
export interface RateMoment {
  /** In milliseconds since whenever; fractions are dropped. */
  readonly nowMs: number;
  /** A bucket of requests holds what comes in during this time. */
  readonly burstMs: number;
}

/** Where the books are; a subject of which nothing is known gets a new one. */
export type BookOf = (subject: string) => SubjectBook;

/** The book of a subject of which nothing is known. */
function createBook(): SubjectBook {
  return { requests: undefined, tokens: undefined, places: new Map(), idleAt: 0 };
}

/** Takes the demand from all of its subjects, or from none. */
export function takeFrom(bookOf: BookOf, demand: RateDemand, moment: RateMoment): RateDecision {
  const nowMs = Math.floor(moment.nowMs);
  const parts = demand.subjects.map((limits) => ({ limits, book: bookOf(limits.subject) }));
  let obstacle: Obstacle | undefined;
  for (const { limits, book } of parts) {
    for (const next of findObstacles(limits, book, { demand, nowMs, burstMs: moment.burstMs }))
      if (obstacle === undefined || next.retryAfterMs > obstacle.retryAfterMs) obstacle = next;
  }
  const levels: SubjectLevels[] = [];
  for (const { limits, book } of parts) {
    if (obstacle === undefined) takeOne(limits, book, { demand, nowMs, burstMs: moment.burstMs });
    book.idleAt = idleAtOf(limits, book, { nowMs, burstMs: moment.burstMs });
    levels.push(toLevels(limits, book, moment.burstMs));
  }
  return obstacle === undefined ? { admitted: true, levels } : { admitted: false, ...obstacle, levels };
}

/** Frees the places of a request that is over and settles its tokens: used more than was taken, it leaves a debt. */
export function giveBackTo(bookOf: BookOf, release: RateRelease, moment: RateMoment): void {
  const nowMs = Math.floor(moment.nowMs);
  const { id, reservedTokens, usedTokens, usedRequests = 1 } = release;
  for (const limits of release.subjects) {
    const book = bookOf(limits.subject);
    book.places.delete(id);
    for (const kind of KINDS) {
      const size = sizeOf(kind, limits, moment.burstMs);
      if (size === undefined) continue;
      const units =
        kind === "requests" ? (1 - usedRequests) * UNITS : unitsOf(reservedTokens, size) - usedTokens * UNITS;
      book[kind] = add(refill(book[kind], size, nowMs), units, size);
    }
    book.idleAt = Math.max(book.idleAt, idleAtOf(limits, book, { nowMs, burstMs: moment.burstMs }));
  }
}

/** Holds the places for another lease; also those that had been forgotten, for their requests are under way. */
export function renewIn(bookOf: BookOf, held: readonly Held[], { nowMs: moment }: Pick<RateMoment, "nowMs">): void {
  const endsAt = Math.floor(moment) + LEASE_MS;
  for (const { id, subject } of held) {
    const book = bookOf(subject);
    book.places.set(id, endsAt);
    book.idleAt = Math.max(book.idleAt, endsAt);
  }
}

interface Obstacle {
  readonly subject: string;
  readonly limit: RateLimit;
  readonly retryAfterMs: number;
}

interface DemandMoment extends RateMoment {
  readonly demand: RateDemand;
}

/** Brings the book up to this moment, and says what keeps the demand out. */
function findObstacles(limits: RateSubject, book: SubjectBook, { demand, nowMs, burstMs }: DemandMoment): Obstacle[] {
  const { subject } = limits;
  const found: Obstacle[] = [];
  for (const kind of KINDS) {
    const size = sizeOf(kind, limits, burstMs);
    const bucket = size && refill(book[kind], size, nowMs);
    book[kind] = bucket;
    if (size === undefined || bucket === undefined) continue;
    const retryAfterMs = waitMs(bucket, neededUnits(kind, demand, size), { size, nowMs });
    if (retryAfterMs > 0) found.push({ subject, limit: kind, retryAfterMs });
  }
  const places = placesOf(limits);
  if (places === undefined || book.places.size < places) return found;
  dropEnded(book.places, nowMs);
  if (book.places.size >= places) found.push({ subject, limit: "concurrency", retryAfterMs: CONCURRENCY_RETRY_MS });
  return found;
}

/** A request without tokens is not kept out by a debt of them. */
function neededUnits(kind: "requests" | "tokens", { tokens }: RateDemand, size: BucketSize): number {
  if (kind === "requests") return UNITS;
  return tokens > 0 ? unitsOf(tokens, size) : Number.NEGATIVE_INFINITY;
}

function takeOne(limits: RateSubject, book: SubjectBook, { demand, nowMs, burstMs }: DemandMoment): void {
  for (const kind of KINDS) {
    const size = sizeOf(kind, limits, burstMs);
    const bucket = book[kind];
    if (size === undefined || bucket === undefined) continue;
    book[kind] = add(bucket, kind === "requests" ? -UNITS : -unitsOf(demand.tokens, size), size);
  }
  if (limits.concurrentRequests !== undefined) book.places.set(demand.id, nowMs + LEASE_MS);
}

/**
 * Drops the places that have ended. No other is held for longer than a lease from now: the clock may have gone back.
 */
export function dropEnded(places: Map<string, number>, nowMs: number): void {
  for (const [id, endsAt] of places) {
    if (endsAt <= nowMs) places.delete(id);
    else if (endsAt > nowMs + LEASE_MS) places.set(id, nowMs + LEASE_MS);
  }
}

function idleAtOf(limits: RateSubject, book: SubjectBook, { nowMs, burstMs }: RateMoment): number {
  let idleAt = book.places.size > 0 ? nowMs + LEASE_MS : nowMs;
  for (const kind of KINDS) {
    const size = sizeOf(kind, limits, burstMs);
    const bucket = book[kind];
    if (size !== undefined && bucket !== undefined)
      idleAt = Math.max(idleAt, nowMs + waitMs(bucket, size.capacity, { size, nowMs }));
  }
  return idleAt;
}

function toLevels(limits: RateSubject, book: SubjectBook, burstMs: number): SubjectLevels {
  const [requests, tokens] = KINDS.map((kind) => {
    const size = sizeOf(kind, limits, burstMs);
    const bucket = book[kind];
    return size && bucket && toBucketLevel(bucket, size);
  });
  return { subject: limits.subject, requests, tokens };
}

export interface MemoryRatesOptions {
  readonly clock: Clock;
  /** A bucket of requests holds what comes in during this time. */
  readonly burstMs: number;
  /** Subjects that are remembered; beyond that those not asked for longest begin anew. Default: 100,000. */
  readonly maxSubjects?: number;
  /** The buckets with which a subject begins. Default: full ones. */
  readonly begin?: (subject: string) => Pick<SubjectBook, "requests" | "tokens">;
}

/** Looked at for each request: subjects that nobody asks for any more are forgotten faster than new ones come. */
const SWEPT_AT_ONCE = 4;

/** The state of rates in this process alone. Never rejects. */
export function createMemoryRates({ clock, burstMs, maxSubjects = 100_000, begin }: MemoryRatesOptions): RateStore {
  /** In the order in which they were last asked for. */
  const books = new Map<string, SubjectBook>();

  const bookOf: BookOf = (subject) => {
    const book = books.get(subject) ?? { ...createBook(), ...begin?.(subject) };
    books.delete(subject);
    books.set(subject, book);
    return book;
  };

  /** Forgets what says no more than a missing subject. */
  const sweep = (nowMs: number): void => {
    let looked = 0;
    for (const [subject, { idleAt }] of books) {
      if (books.size <= maxSubjects && (looked >= SWEPT_AT_ONCE || idleAt > nowMs)) return;
      looked += 1;
      books.delete(subject);
    }
  };

  return {
    async take(demand) {
      const nowMs = clock.monotonic();
      const decision = takeFrom(bookOf, demand, { nowMs, burstMs });
      sweep(nowMs);
      return decision;
    },
    async release(release) {
      giveBackTo(bookOf, release, { nowMs: clock.monotonic(), burstMs });
    },
    async renew({ held }) {
      const nowMs = clock.monotonic();
      renewIn(bookOf, held, { nowMs });
      sweep(nowMs);
      return 1;
    },
    async close() {
      books.clear();
    },
  };
}
