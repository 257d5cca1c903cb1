import type { Bucket } from "./bucket.ts";
import { dropEnded, type RateMoment, type SubjectBook } from "./memory.ts";

/** State of one key or account as JSON. A missing one means full buckets and no concurrency units. */
export interface SubjectState {
  readonly requests?: Bucket;
  readonly tokens?: Bucket;
  /** Expiry of the concurrency unit of each request in flight, without expired ones. */
  readonly places: Readonly<Record<string, number>>;
  /** Time from which it equals a missing one and may be dropped. */
  readonly idleAt: number;
}

/** Reads a state, without expired concurrency units. */
export function toBook(state: SubjectState | undefined, { nowMs }: Pick<RateMoment, "nowMs">): SubjectBook {
  const places = new Map(Object.entries(state?.places ?? {}));
  dropEnded(places, Math.floor(nowMs));
  return { requests: state?.requests, tokens: state?.tokens, places, idleAt: state?.idleAt ?? 0 };
}

/** Writes a state. */
export function toState({ requests, tokens, places, idleAt }: SubjectBook): SubjectState {
  return {
    ...(requests !== undefined && { requests }),
    ...(tokens !== undefined && { tokens }),
    places: Object.fromEntries(places),
    idleAt,
  };
}
