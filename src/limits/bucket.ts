import type { BucketLevel, RateSubject } from "./rates.ts";

/**
 * Levels are counted in sixty-thousandths: a limit of n per minute then adds exactly n of them in each millisecond, so
 * that all arithmetic is in integers, and in Lua's doubles comes out the same.
 */
export const UNITS = 60_000;

/** A clock may go back by this much: a bucket stands still until it has caught up. By more: it goes on from there. */
const MAX_CLOCK_STEP_MS = 60_000;
/** A debt is paid off within an hour, however wrong the usage that a provider stated. */
const MAX_DEBT_MS = 3_600_000;
/** Keeps every product below 2^53, together with the longest burst. */
const MAX_PER_MINUTE = 1_000_000_000;
const MAX_BURST_MS = 3_600_000;

/** What one token bucket held at one moment. */
export interface Bucket {
  /** In units; negative for a debt. */
  readonly level: number;
  /** Milliseconds of the clock of whoever keeps the state. */
  readonly at: number;
}

/** How large a bucket is and how fast it fills up. */
export interface BucketSize {
  /** In units. */
  readonly capacity: number;
  /** A whole number from 1; also the units that it gains in a millisecond. */
  readonly perMinute: number;
}

/** A limit as it is applied: a whole number from 1. */
function toWhole(limit: number): number {
  return Math.min(Math.max(Math.floor(limit), 1), MAX_PER_MINUTE);
}

/**
 * The bucket of a request rate holds what comes in during `burstMs`, and at least one request. That of a token rate
 * holds a minute's tokens at least: one completion takes thousands at once, and were it smaller, most would not fit
 * into it.
 */
export function sizeOf(kind: "requests" | "tokens", subject: RateSubject, burstMs: number): BucketSize | undefined {
  const limit = kind === "requests" ? subject.requestsPerMinute : subject.tokensPerMinute;
  if (limit === undefined) return undefined;
  const perMinute = toWhole(limit);
  const longestMs = Math.min(Math.floor(burstMs), MAX_BURST_MS);
  const capacity =
    kind === "requests" ? Math.max(perMinute * longestMs, UNITS) : perMinute * Math.max(longestMs, UNITS);
  return { capacity, perMinute };
}

/** How many places a subject has; undefined when it is not limited. */
export function placesOf(subject: RateSubject): number | undefined {
  return subject.concurrentRequests === undefined ? undefined : toWhole(subject.concurrentRequests);
}

/** The bucket at this moment; one that is not known is full. */
export function refill(bucket: Bucket | undefined, { capacity, perMinute }: BucketSize, nowMs: number): Bucket {
  if (bucket === undefined) return { level: capacity, at: nowMs };
  const stepsBackMs = bucket.at - nowMs;
  if (stepsBackMs > 0)
    return { level: Math.min(bucket.level, capacity), at: stepsBackMs > MAX_CLOCK_STEP_MS ? nowMs : bucket.at };
  return { level: Math.min(bucket.level - stepsBackMs * perMinute, capacity), at: nowMs };
}

/** The bucket with this many units more, or fewer: neither more than it can hold nor a debt beyond all measure. */
export function add(bucket: Bucket, units: number, { capacity, perMinute }: BucketSize): Bucket {
  const level = Math.max(Math.min(bucket.level + units, capacity), -perMinute * MAX_DEBT_MS);
  return { level, at: bucket.at };
}

/** What a demand takes: all there can be when it asks for more than that. */
export function unitsOf(count: number, { capacity }: BucketSize): number {
  return Math.min(count * UNITS, capacity);
}

/** How long after `nowMs` a refilled bucket holds this much: to the millisecond. 0 when it does already. */
export function waitMs(
  bucket: Bucket,
  units: number,
  { size, nowMs }: { readonly size: BucketSize; readonly nowMs: number },
): number {
  if (bucket.level >= units) return 0;
  return Math.ceil((units - bucket.level) / size.perMinute) + (bucket.at - nowMs);
}

/** As it is told: in requests or tokens. */
export function toBucketLevel(bucket: Bucket, { capacity, perMinute }: BucketSize): BucketLevel {
  return { capacity: capacity / UNITS, level: bucket.level / UNITS, perMinute };
}
