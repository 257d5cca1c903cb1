import type { Bucket } from "./bucket.ts";
import { dropEnded, type RateMoment, type SubjectBook } from "./memory.ts";

/** What is kept of one key or account, in a form that JSON can hold. A missing one means full and without places. */
export interface SubjectState {
  readonly requests?: Bucket;
  readonly tokens?: Bucket;
  /** When the place of each request under way ends by itself; without those that have ended. */
  readonly places: Readonly<Record<string, number>>;
  /** From then on it says no more than a missing one, and may be forgotten. */
  readonly idleAt: number;
}

/** The book to decide with, without the places that have ended. */
export function toBook(state: SubjectState | undefined, { nowMs }: Pick<RateMoment, "nowMs">): SubjectBook {
  const places = new Map(Object.entries(state?.places ?? {}));
  dropEnded(places, Math.floor(nowMs));
  return { requests: state?.requests, tokens: state?.tokens, places, idleAt: state?.idleAt ?? 0 };
}

/** What is to be kept of the book. */
export function toState({ requests, tokens, places, idleAt }: SubjectBook): SubjectState {
  return {
    ...(requests !== undefined && { requests }),
    ...(tokens !== undefined && { tokens }),
    places: Object.fromEntries(places),
    idleAt,
  };
}
