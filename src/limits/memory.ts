import type { Clock } from "../core/clock.ts";
import { isAttributed } from "./attributed.ts";
import {
  type Bucket,
  type BucketSize,
  placesOf,
  refill,
  settle,
  sizeOf,
  take,
  toBucketLevel,
  UNITS,
  unitsOf,
  waitMs,
} from "./bucket.ts";
import { type Amounts, type CreditDemand, lendFrom, lentOf, NOTHING, withoutLent } from "./credits.ts";
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

/** Reported wait for a concurrency unit. An estimate, because the end of a request in flight is unknown. */
const CONCURRENCY_RETRY_MS = 1000;

const KINDS = ["requests", "tokens"] as const;

/** State of one key, account or end user. Changed in place. */
export interface SubjectBook {
  requests: Bucket | undefined;
  tokens: Bucket | undefined;
  /** Expiry of the concurrency unit of each request in flight; some may have expired. */
  readonly places: Map<string, number>;
  /** Credit by its holder; its concurrency units are also those in flight. Default: none. */
  lent?: Map<string, Amounts>;
  /** Time from which it equals a missing one: full buckets, no concurrency unit held. */
  idleAt: number;
}

/** Time of a decision, by the clock of the state's store. */
export interface RateMoment {
  /** Milliseconds since any origin; fractions are dropped. */
  readonly nowMs: number;
  /** Capacity of request buckets, as time. */
  readonly burstMs: number;
}

/** Finds the state of a subject; creates it for an unknown one. */
export type BookOf = (subject: string) => SubjectBook;

/** State of an unknown subject. */
function createBook(): SubjectBook {
  return { requests: undefined, tokens: undefined, places: new Map(), idleAt: 0 };
}

/** Takes a demand from all its subjects, or from none. */
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

/** Releases the concurrency units of a request and settles its tokens: use beyond the reservation is a debt. */
export function returnTo(bookOf: BookOf, release: RateRelease, moment: RateMoment): void {
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
      book[kind] = settle(book[kind], units, { size, nowMs });
    }
    book.idleAt = Math.max(book.idleAt, idleAtOf(limits, book, { nowMs, burstMs: moment.burstMs }));
  }
}

/** Renews concurrency units for another lease, even expired ones, because their requests are in flight. */
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

/** Updates the state to `nowMs`. Returns the limits that refuse the demand. */
function findObstacles(limits: RateSubject, book: SubjectBook, { demand, nowMs, burstMs }: DemandMoment): Obstacle[] {
  const { subject } = limits;
  const found: Obstacle[] = [];
  for (const kind of KINDS) {
    const size = sizeOf(kind, limits, burstMs);
    const bucket = size && refill(book[kind], withoutLent(size, book, kind), nowMs);
    book[kind] = bucket;
    if (size === undefined || bucket === undefined) continue;
    const retryAfterMs = waitMs(bucket, neededUnits(kind, demand, size), { size, nowMs });
    if (retryAfterMs > 0) found.push({ subject, limit: kind, retryAfterMs });
  }
  const places = placesOf(limits);
  const lent = lentOf(book, "places");
  if (places === undefined || book.places.size + lent < places) return found;
  dropEnded(book.places, nowMs);
  if (book.places.size + lent >= places)
    found.push({ subject, limit: "concurrency", retryAfterMs: CONCURRENCY_RETRY_MS });
  return found;
}

/** Units that a demand needs. A request without tokens needs none, so a debt of tokens does not refuse it. */
function neededUnits(kind: "requests" | "tokens", { tokens }: RateDemand, size: BucketSize): number {
  if (kind === "requests") return UNITS;
  return tokens > 0 ? unitsOf(tokens, size) : Number.NEGATIVE_INFINITY;
}

function takeOne(limits: RateSubject, book: SubjectBook, { demand, nowMs, burstMs }: DemandMoment): void {
  for (const kind of KINDS) {
    const size = sizeOf(kind, limits, burstMs);
    const bucket = book[kind];
    if (size === undefined || bucket === undefined) continue;
    book[kind] = take(bucket, kind === "requests" ? UNITS : unitsOf(demand.tokens, size), size);
  }
  if (limits.concurrentRequests !== undefined) book.places.set(demand.id, nowMs + LEASE_MS);
}

/**
 * Drops expired concurrency units, and limits the others to one lease from now, because the clock may have gone back.
 */
export function dropEnded(places: Map<string, number>, nowMs: number): void {
  for (const [id, endsAt] of places) {
    if (endsAt <= nowMs) places.delete(id);
    else if (endsAt > nowMs + LEASE_MS) places.set(id, nowMs + LEASE_MS);
  }
}

function idleAtOf(limits: RateSubject, book: SubjectBook, { nowMs, burstMs }: RateMoment): number {
  let idleAt = book.places.size > 0 || (book.lent?.size ?? 0) > 0 ? nowMs + LEASE_MS : nowMs;
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
    if (size === undefined || bucket === undefined) return undefined;
    // Credit counts as left until its holder says otherwise.
    return toBucketLevel({ ...bucket, level: bucket.level + lentOf(book, kind) * UNITS }, size);
  });
  return { subject: limits.subject, requests, tokens };
}

export interface MemoryRatesOptions {
  readonly clock: Clock;
  /** Capacity of request buckets, as time. */
  readonly burstMs: number;
  /** Limit of kept keys and accounts, and of kept end users. The least recently used are evicted. Default: 100,000. */
  readonly maxSubjects?: number;
  /** Returns the initial buckets of a subject. Default: full. */
  readonly begin?: (subject: string) => Pick<SubjectBook, "requests" | "tokens">;
}

/** Subjects that are checked at each request. More than one, so that idle subjects are dropped faster than new ones arrive. */
const SWEPT_AT_ONCE = 4;

/** States of subjects, in the order of their last use. */
class Books {
  readonly #books = new Map<string, SubjectBook>();
  readonly #options: MemoryRatesOptions;

  constructor(options: MemoryRatesOptions) {
    this.#options = options;
  }

  find(subject: string): SubjectBook {
    const book = this.#books.get(subject) ?? { ...createBook(), ...this.#options.begin?.(subject) };
    this.#books.delete(subject);
    this.#books.set(subject, book);
    return book;
  }

  /** Drops subjects that equal missing ones. */
  sweep(nowMs: number): void {
    const { maxSubjects = 100_000 } = this.#options;
    let looked = 0;
    for (const [subject, { idleAt }] of this.#books) {
      if (this.#books.size <= maxSubjects && (looked >= SWEPT_AT_ONCE || idleAt > nowMs)) return;
      looked += 1;
      this.#books.delete(subject);
    }
  }

  clear(): void {
    this.#books.clear();
  }
}

/** A store of rates that can lend parts of limits. */
export interface MemoryRates extends RateStore {
  /** Lends and takes back a part of a subject's limits. `lent`: what its holder has from now on. */
  lend(demand: CreditDemand): { readonly granted: Amounts; readonly lent: Amounts; readonly levels: SubjectLevels };
  /** Ends the credit of a holder that will give back nothing: its requests and tokens stay taken. */
  writeOff(credit: { readonly holder: string; readonly subject: string }): void;
}

/** State of rates in this process. Never rejects. */
export function createMemoryRates(options: MemoryRatesOptions): MemoryRates {
  const { clock, burstMs } = options;
  // Separate, so that end users cannot evict keys and accounts.
  const [books, attributed] = [new Books(options), new Books(options)];
  const bookOf: BookOf = (subject) => (isAttributed(subject) ? attributed : books).find(subject);
  const sweep = (nowMs: number): void => {
    books.sweep(nowMs);
    attributed.sweep(nowMs);
  };

  return {
    async take(demand) {
      const nowMs = clock.monotonic();
      const decision = takeFrom(bookOf, demand, { nowMs, burstMs });
      sweep(nowMs);
      return decision;
    },
    async release(release) {
      returnTo(bookOf, release, { nowMs: clock.monotonic(), burstMs });
    },
    lend(demand) {
      const moment = { nowMs: clock.monotonic(), burstMs };
      const { limits, holder } = demand;
      const granted = lendFrom(bookOf, demand, moment);
      const book = bookOf(limits.subject);
      book.idleAt = Math.max(book.idleAt, idleAtOf(limits, book, { nowMs: Math.floor(moment.nowMs), burstMs }));
      return { granted, lent: book.lent?.get(holder) ?? NOTHING, levels: toLevels(limits, book, burstMs) };
    },
    writeOff({ holder, subject }) {
      bookOf(subject).lent?.delete(holder);
    },
    async renew({ held }) {
      const nowMs = clock.monotonic();
      renewIn(bookOf, held, { nowMs });
      sweep(nowMs);
      return 1;
    },
    async close() {
      books.clear();
      attributed.clear();
    },
  };
}
