import { type BucketSize, placesOf, refill, settle, sizeOf, take, UNITS } from "./bucket.ts";
import type { BookOf, RateMoment, SubjectBook } from "./memory.ts";
import type { RateSubject } from "./rates.ts";

/** Requests, tokens and concurrency units. */
export interface Amounts {
  readonly requests: number;
  readonly tokens: number;
  readonly places: number;
}

export const NOTHING: Amounts = { requests: 0, tokens: 0, places: 0 };

export function isNothing({ requests, tokens, places }: Amounts): boolean {
  return requests === 0 && tokens === 0 && places === 0;
}

/** What a holder gives back of its credit at a subject, keeps and wishes to have in addition. */
export interface CreditDemand {
  /** ID of the process that may spend the credit. */
  readonly holder: string;
  readonly limits: RateSubject;
  /** Negative tokens: use beyond the reservation. */
  readonly returned: Amounts;
  /** The credit that it keeps unspent, without units of requests in flight. Undefined: as last stated. */
  readonly kept: Amounts | undefined;
  readonly wished: Amounts;
}

/** Part of its limits that may be out as credit: a bucket stays at least half full, and half of the concurrency units stay free. */
const AMPLE = 2;

/**
 * Lends a part of a subject's limits, which the holder may spend without asking: all that it wishes, or nothing unless the subject is
 * far from each of its limits afterwards. Returns the granted amounts.
 *
 * What is lent is taken from the buckets, and they are not refilled in its place. So buckets and credits together never hold more than
 * the capacity, and one bucket would have admitted every request that they admit.
 */
export function lendFrom(bookOf: BookOf, demand: CreditDemand, moment: RateMoment): Amounts {
  const { holder, limits, returned, kept, wished } = demand;
  const nowMs = Math.floor(moment.nowMs);
  const book = bookOf(limits.subject);
  const before = book.lent?.get(holder) ?? NOTHING;
  const places = Math.max(before.places - returned.places, 0);
  setLent(book, holder, { ...(kept ?? before), places });
  let ample = isFarFromPlaces(limits, book, wished);
  const sizes: ["requests" | "tokens", BucketSize][] = [];
  for (const kind of ["requests", "tokens"] as const) {
    const size = sizeOf(kind, limits, moment.burstMs);
    if (size === undefined) continue;
    sizes.push([kind, size]);
    const settled = settle(book[kind], returned[kind] * UNITS, { size, nowMs });
    const bucket = refill(settled, withoutLent(size, book, kind), nowMs);
    book[kind] = bucket;
    ample &&= bucket.level - wished[kind] * UNITS >= size.capacity / AMPLE;
  }
  if (!ample) return NOTHING;
  for (const [kind, size] of sizes) book[kind] = take(book[kind]!, wished[kind] * UNITS, size);
  const { requests, tokens } = kept ?? before;
  setLent(book, holder, {
    requests: requests + wished.requests,
    tokens: tokens + wished.tokens,
    places: places + wished.places,
  });
  return wished;
}

/** Sum of what is lent of a kind. */
export function lentOf({ lent }: Pick<SubjectBook, "lent">, kind: keyof Amounts): number {
  let sum = 0;
  if (lent !== undefined) for (const amounts of lent.values()) sum += amounts[kind];
  return sum;
}

/** The size of a bucket of which a part is lent. */
export function withoutLent(
  size: BucketSize,
  book: Pick<SubjectBook, "lent">,
  kind: "requests" | "tokens",
): BucketSize {
  if (book.lent === undefined) return size;
  return { ...size, capacity: Math.max(size.capacity - lentOf(book, kind) * UNITS, 0) };
}

function setLent(book: SubjectBook, holder: string, amounts: Amounts): void {
  book.lent ??= new Map();
  if (isNothing(amounts)) book.lent.delete(holder);
  else book.lent.set(holder, amounts);
}

function isFarFromPlaces(limits: RateSubject, book: SubjectBook, wished: Amounts): boolean {
  const places = placesOf(limits);
  return places === undefined || (book.places.size + lentOf(book, "places") + wished.places) * AMPLE <= places;
}
