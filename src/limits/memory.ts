import type { Clock } from "../core/clock.ts";
import type { RateStore } from "./rates.ts";
import { type BookOf, createBook, giveBackTo, renewIn, type SubjectBook, takeFrom } from "./subject.ts";

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
