import type { BucketLevel, RateSubject } from "./rates.ts";

/**
 * Unit of levels: a 60,000th. A limit of n per minute adds exactly n units in a millisecond, so all arithmetic is in integers and
 * gives the same results in Lua's doubles.
 */
export const UNITS = 60_000;

/** After a smaller backward step of the clock, a bucket is not refilled until the clock has caught up; after a larger one at once. */
const MAX_CLOCK_STEP_MS = 60_000;
/** Limits a debt to an hour of refill, in case a provider's usage was far too high. */
const MAX_DEBT_MS = 3_600_000;
/** Largest limit. With the longest burst, all products stay below 2^53. */
const MAX_PER_MINUTE = 1_000_000_000;
const MAX_BURST_MS = 3_600_000;

/** Level of a token bucket at a time. */
export interface Bucket {
  /** In units; negative for a debt. */
  readonly level: number;
  /** Time of the level in milliseconds, by the clock of the state's store. */
  readonly at: number;
}

/** Capacity and rate of a bucket. */
export interface BucketSize {
  /** In units. */
  readonly capacity: number;
  /** A whole number from 1: the limit per minute, and units per millisecond. */
  readonly perMinute: number;
}

/** The applied limit: a whole number from 1. */
function toWhole(limit: number): number {
  return Math.min(Math.max(Math.floor(limit), 1), MAX_PER_MINUTE);
}

/**
 * A bucket of requests has the capacity of `burstMs`, at least one request. A bucket of tokens has the capacity of at least a minute:
 * a completion takes thousands of tokens at once, and most would not fit into a smaller bucket.
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

/** Concurrency limit of a subject; undefined without one. */
export function placesOf(subject: RateSubject): number | undefined {
  return subject.concurrentRequests === undefined ? undefined : toWhole(subject.concurrentRequests);
}

/** The bucket, refilled until `nowMs`. An unknown bucket is full. */
export function refill(bucket: Bucket | undefined, { capacity, perMinute }: BucketSize, nowMs: number): Bucket {
  if (bucket === undefined) return { level: capacity, at: nowMs };
  const stepsBackMs = bucket.at - nowMs;
  if (stepsBackMs > 0)
    return { level: Math.min(bucket.level, capacity), at: stepsBackMs > MAX_CLOCK_STEP_MS ? nowMs : bucket.at };
  return { level: Math.min(bucket.level - stepsBackMs * perMinute, capacity), at: nowMs };
}

/** Takes units from a bucket, down to the largest debt. */
export function take(bucket: Bucket, units: number, { perMinute }: BucketSize): Bucket {
  return { level: Math.max(bucket.level - units, -perMinute * MAX_DEBT_MS), at: bucket.at };
}

/**
 * Gives back units that were taken by this size, or takes more (negative units). The limit may have changed since, so the bucket is
 * not lowered to this capacity, and when units are given back it is not refilled at this rate: the next demand refills it by its own
 * size. An undefined bucket, which is full, stays undefined unless more units are taken.
 */
export function settle(
  bucket: Bucket | undefined,
  units: number,
  { size, nowMs }: { readonly size: BucketSize; readonly nowMs: number },
): Bucket | undefined {
  if (units >= 0) return bucket && { level: bucket.level + units, at: bucket.at };
  const isLarger = bucket !== undefined && bucket.level > size.capacity;
  const { level, at } = isLarger ? bucket : refill(bucket, size, nowMs);
  return { level: Math.max(level + units, Math.min(level, -size.perMinute * MAX_DEBT_MS)), at };
}

/** Units that a demand takes, at most the capacity. */
export function unitsOf(count: number, { capacity }: BucketSize): number {
  return Math.min(count * UNITS, capacity);
}

/** Time from `nowMs` until a refilled bucket has these units, in whole milliseconds; 0 when it has them. */
export function waitMs(
  bucket: Bucket,
  units: number,
  { size, nowMs }: { readonly size: BucketSize; readonly nowMs: number },
): number {
  if (bucket.level >= units) return 0;
  return Math.ceil((units - bucket.level) / size.perMinute) + (bucket.at - nowMs);
}

/** A level in requests or tokens, for reports. */
export function toBucketLevel(bucket: Bucket, { capacity, perMinute }: BucketSize): BucketLevel {
  return { capacity: capacity / UNITS, level: bucket.level / UNITS, perMinute };
}
