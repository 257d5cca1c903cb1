import type { Tally, TrackRecord } from "./track-record.ts";

/** Attempts and failures that a target needs at least to be an outlier; its peers need the attempts together. */
const LEAST_ATTEMPTS = 20;
const LEAST_FAILURES = 5;
/** A target is an outlier when at least LEAST_SHARE of its attempts failed, and TIMES_PEERS times the share of its peers. */
const LEAST_SHARE = 0.1;
const TIMES_PEERS = 3;
/** First period in which an outlier is passed over; doubled each time, up to OUT_MAX_MS. */
const OUT_MS = 30_000;
const OUT_MAX_MS = 300_000;
/** Time without being passed over after which the next period is OUT_MS again. */
const FORGIVEN_MS = 600_000;
/** Interval of comparisons. */
const COMPARED_MS = 1_000;

/** A target among its peers. */
interface Peer {
  readonly record: TrackRecord;
  /** Latest period in which it is or was passed over. */
  out: Span | undefined;
  /** How often it was passed over in a row. */
  times: number;
}

/** A period by the clock's `monotonic`. */
export interface Span {
  readonly sinceMs: number;
  readonly untilMs: number;
}

/**
 * Finds the targets of one route that fail more often than the others, though too seldom to open their circuit breakers. Passes over
 * at most half of the targets for a time.
 */
export class Outliers {
  #comparedMs = -Infinity;

  compare(peers: readonly Peer[], nowMs: number): void {
    if (nowMs - this.#comparedMs < COMPARED_MS) return;
    this.#comparedMs = nowMs;
    const isOut = ({ out }: Peer): boolean => out !== undefined && out.untilMs > nowMs;
    let left = Math.floor(peers.length / 2) - peers.filter(isOut).length;
    if (left <= 0) return;
    const tallies = new Map(peers.map((peer) => [peer, peer.record.tally()]));
    const all = sumOf([...tallies.values()]);
    const byShare = [...tallies].toSorted(([, one], [, other]) => shareOf(other) - shareOf(one));
    for (const [peer, own] of byShare) {
      if (left === 0) return;
      const others = { attempts: all.attempts - own.attempts, failures: all.failures - own.failures };
      if (isOut(peer) || !isOutlier(own, others)) continue;
      passOver(peer, nowMs);
      left -= 1;
    }
  }
}

function isOutlier(own: Tally, others: Tally): boolean {
  const isKnown = own.attempts >= LEAST_ATTEMPTS && own.failures >= LEAST_FAILURES && others.attempts >= LEAST_ATTEMPTS;
  return isKnown && shareOf(own) >= Math.max(LEAST_SHARE, TIMES_PEERS * shareOf(others));
}

function passOver(peer: Peer, nowMs: number): void {
  const isForgiven = peer.out === undefined || nowMs - peer.out.untilMs >= FORGIVEN_MS;
  peer.times = isForgiven ? 1 : peer.times + 1;
  peer.out = { sinceMs: nowMs, untilMs: nowMs + Math.min(OUT_MS * 2 ** (peer.times - 1), OUT_MAX_MS) };
  peer.record.clear();
}

const shareOf = ({ attempts, failures }: Tally): number => (attempts === 0 ? 0 : failures / attempts);

function sumOf(tallies: readonly Tally[]): Tally {
  return {
    attempts: tallies.reduce((sum, { attempts }) => sum + attempts, 0),
    failures: tallies.reduce((sum, { failures }) => sum + failures, 0),
  };
}

/** Longest slow start. */
const SLOW_START_MS = 30_000;
/** Share of its requests that a target gets at the start of the slow start. */
const FIRST_SHARE = 0.1;

/**
 * Slow start: share of its requests, 0 to 1, that a target gets after the given period out. The share grows for as long as the
 * period lasted, at most SLOW_START_MS.
 */
export function shareAfter({ sinceMs, untilMs }: Span, nowMs: number): number {
  if (nowMs < untilMs) return 0;
  const lastsMs = Math.max(Math.min(untilMs - sinceMs, SLOW_START_MS), 1);
  return Math.min(FIRST_SHARE + ((1 - FIRST_SHARE) * (nowMs - untilMs)) / lastsMs, 1);
}
