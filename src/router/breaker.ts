import { BoundedMap } from "../core/bounded-map.ts";
import type { Clock } from "../core/clock.ts";
import { Failure, type FailureCode } from "../core/failure.ts";
import type { Span } from "./outliers.ts";
import { TrackRecord } from "./track-record.ts";
import type { Opening } from "./upstream-health.ts";

/** When a breaker opens and for how long. */
export interface BreakerOptions {
  /** Consecutive failures that open the breaker. */
  readonly failures: number;
  /** First open time; doubled for each failed probe, up to `maxOpenMs`. */
  readonly openMs: number;
  readonly maxOpenMs: number;
}

/** Longest open time after a provider's `retry-after`, which may concern only one large request. */
const MAX_RATE_LIMIT_MS = 60_000;

/** The breaker also opens for an account when more than half of its latest WINDOW attempts failed. */
const WINDOW = 20;

/** Time after an answer to another account in which this account's failures do not count against the model. */
const OTHERS_MS = 10_000;
/** Time after an answer in which the breaker does not open for all accounts. Short: a provider that starts to fail has just answered. */
const OTHERS_OF_ALL_MS = 3_000;

/** Failures that count against the health of the upstream model; invalid requests and disconnected callers do not. */
const COUNTED: ReadonlySet<FailureCode> = new Set([
  "upstream_unavailable",
  "upstream_timeout",
  "upstream_protocol",
  "upstream_refused_us",
]);

/**
 * An account's probe may be joined by a probe of another account once the first account has probed this much longer than the
 * other. Earlier probes count too: otherwise a caller that disconnects and calls again at once would block all others.
 */
const PROBE_MS = 5_000;

/** Time between a failed probe and the next one of another account. */
const NEXT_PROBE_MS = 1_000;

/** Accounts whose failures are kept; the oldest is evicted. */
const MAX_ACCOUNTS = 1_000;

/** Account and time of an event: a success, a rate limit, or the beginning of a probe. */
interface Met {
  readonly accountId: string;
  atMs: number;
}

interface Probe extends Met {
  /** `Outage.probedMs` of `#shared` when the probe began. */
  readonly probedMs: BoundedMap<string, number> | undefined;
}

/** An outage: the breaker is open until `untilMs`, then half-open with one probe at a time until a probe succeeds. */
interface Outage {
  /** Wall-clock time of its start. */
  readonly beganAt: number;
  /** Time of the last failure that prolonged it. */
  sinceMs: number;
  untilMs: number;
  /** The probe in flight. A probe that was replaced by another counts like any other attempt. */
  probe: Probe | undefined;
  /** Time that ended probes took, by account; each counts PROBE_MS at most. */
  readonly probedMs: BoundedMap<string, number>;
  last: Failure;
}

/** Attempts of one account. Kept until all of its latest WINDOW attempts have succeeded. */
interface AccountRecord {
  /** Number of consecutive failures. */
  inARow: number;
  /** For each of the latest attempts, whether it failed. */
  readonly latest: boolean[];
  /** Next open time, before it is bounded by the options. */
  nextOpenMs: number;
  outage: Outage | undefined;
}

/** Permission for one attempt. Exactly one of the methods but `committed` must be called at its end. */
export interface BreakerPermit {
  /** Call it at the first content, which shows that the upstream works. One of the other methods must follow. */
  committed(): void;
  /** The attempt succeeded. */
  succeeded(): void;
  /** The attempt failed. Returns the milliseconds until the account may get a permit; undefined when it may get one now. */
  failed(failure: Failure): number | undefined;
  /** No verdict: the caller disconnected, or the request caused the failure. */
  abandoned(): void;
}

/**
 * The circuit breaker of one upstream model, with a state for each account and one that all accounts share. Closed, it permits
 * all attempts. Too many failures of an account open it for that account; after the open time a single probe decides whether it
 * closes. A rate limit opens it for the time that the provider asked for.
 *
 * One account's failures and rate limits never open the breaker for another: requests that never succeed would otherwise keep all
 * callers out. While the model answers another account, an account with an open breaker may probe at once, one attempt at a time.
 *
 * When several accounts fail and the model has answered none for OTHERS_OF_ALL_MS, the breaker opens for all accounts. Then any
 * account whose own breaker is closed may probe, one attempt at a time, or beside another account's probe after PROBE_MS.
 */
export class Breaker {
  readonly #options: () => BreakerOptions;
  readonly #clock: Clock;
  readonly #accounts = new Map<string, AccountRecord>();
  /** The outage that all accounts share; undefined while the shared state is closed. */
  #shared: Outage | undefined;
  /** Failures of all accounts since the last success. */
  #inARow = 0;
  /** For each of the latest attempts of all accounts: undefined for a success, the account for a failure. */
  #latest: (string | undefined)[] = [];
  /** The last success, and the last one of another account before it. */
  #success: Met | undefined;
  #othersSuccess: Met | undefined;
  /** The last rate limit since the last success. */
  #limited: Met | undefined;

  /** The last outage that has ended. */
  #lastOutage: Span | undefined;
  /** The counted attempts, for `Outliers`. */
  readonly record: TrackRecord;

  /** `options`: returns the options in force; a reload may change them. */
  constructor(options: () => BreakerOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
    this.record = new TrackRecord(clock);
  }

  /** State of `#current`: `closed`, `open`, or `half_open` while a probe is due or in flight. */
  get state(): "closed" | "open" | "half_open" {
    const outage = this.#current();
    if (outage === undefined) return "closed";
    return this.#clock.monotonic() < outage.untilMs ? "open" : "half_open";
  }

  /** Start of the current outage; undefined while closed. A failed probe does not start another one. */
  get opening(): Opening | undefined {
    const outage = this.#current();
    if (outage === undefined) return undefined;
    const remainingMs = Math.max(outage.untilMs - this.#clock.monotonic(), 0);
    return { sinceMs: outage.beganAt, remainingMs, isProbed: remainingMs === 0 && outage.probe !== undefined };
  }

  /** Whether an attempt of another account succeeded within OTHERS_MS; then this account's failures do not count against the model. */
  worksForOthers(accountId: string): boolean {
    return this.#hasWorkedForOthers(accountId, this.#clock.monotonic() - OTHERS_MS);
  }

  /** The last outage that has ended, by the clock's `monotonic`; undefined without one. */
  get lastOutage(): Span | undefined {
    return this.#lastOutage;
  }

  /** Time of the last success, by the clock's `monotonic`; undefined without one. */
  get servedAtMs(): number | undefined {
    return this.#success?.atMs;
  }

  /** Whether `admit` would permit an attempt. */
  mayAdmit(accountId: string): boolean {
    return this.#obstacle(accountId) === undefined;
  }

  /** Milliseconds of open time that an account has left; 0 when `admit` permits an attempt, and while a probe is in flight. */
  remainingMs(accountId: string): number {
    return Math.max((this.#obstacle(accountId)?.untilMs ?? -Infinity) - this.#clock.monotonic(), 0);
  }

  /** A permit for one attempt, or the failure to return while the breaker is open. */
  admit(accountId: string): BreakerPermit | Failure {
    const obstacle = this.#obstacle(accountId);
    if (obstacle !== undefined) return this.#refuse(obstacle);
    let probe = this.#beginProbe(accountId);
    let hasContent = false;
    /** Ends the probe of this permit. Returns whether it was still the probe in flight, which decides the breaker's state. */
    const decide = (): boolean => {
      const ended = probe;
      probe = undefined;
      return ended !== undefined && this.#endProbe(ended);
    };
    return {
      committed: () => {
        hasContent = true;
        if (decide()) this.#recovered(accountId);
        this.#works(accountId);
      },
      succeeded: () => {
        if (decide()) this.#recovered(accountId);
        else this.#noteSuccess(accountId);
        // After content, `committed` has noted the success at its own time.
        if (!hasContent) this.#works(accountId);
        this.#note(undefined);
        this.record.add(accountId, { failed: false });
      },
      failed: (failure) => {
        this.#failed(failure, { isProbe: decide(), accountId });
        const openMs = this.remainingMs(accountId);
        return openMs > 0 ? openMs : undefined;
      },
      abandoned: () => void decide(),
    };
  }

  /** The outage that forbids an account an attempt; undefined when an attempt is permitted. */
  #obstacle(accountId: string): Outage | undefined {
    const own = this.#accounts.get(accountId)?.outage;
    if (own !== undefined && !this.#mayProbe(own, accountId)) return own;
    if (this.#shared !== undefined && !this.#mayProbe(this.#shared, accountId)) return this.#shared;
    return undefined;
  }

  /** Whether a probe of this account may begin: there is none in flight, or one of another account that has had PROBE_MS more. */
  #mayProbe({ untilMs, sinceMs, probe, probedMs }: Outage, accountId: string): boolean {
    const nowMs = this.#clock.monotonic();
    if (nowMs < untilMs && !this.#hasWorkedForOthers(accountId, sinceMs)) return false;
    if (probe === undefined) return true;
    if (probe.accountId === accountId) return false;
    const moreMs = (probedMs.get(probe.accountId) ?? 0) - (probedMs.get(accountId) ?? 0);
    return nowMs - probe.atMs + Math.max(moreMs, 0) >= PROBE_MS;
  }

  #beginProbe(accountId: string): Probe | undefined {
    const own = this.#accounts.get(accountId)?.outage;
    if (own === undefined && this.#shared === undefined) return undefined;
    const probe: Probe = { accountId, atMs: this.#clock.monotonic(), probedMs: this.#shared?.probedMs };
    if (own !== undefined) own.probe = probe;
    if (this.#shared !== undefined) this.#shared.probe = probe;
    return probe;
  }

  #endProbe(probe: Probe): boolean {
    let isUndecided = false;
    const { accountId, atMs, probedMs } = probe;
    const tookMs = Math.min(this.#clock.monotonic() - atMs, PROBE_MS);
    probedMs?.set(accountId, (probedMs.get(accountId) ?? 0) + tookMs);
    for (const outage of [this.#accounts.get(accountId)?.outage, this.#shared]) {
      if (outage?.probe !== probe) continue;
      outage.probe = undefined;
      isUndecided = true;
    }
    return isUndecided;
  }

  /** Ends the outage of an account, and the shared one, after a successful probe. */
  #recovered(accountId: string): void {
    const outage = this.#shared ?? this.#accounts.get(accountId)?.outage;
    this.#accounts.delete(accountId);
    // An outage of one account is no outage of the model while the model answers other accounts.
    if (outage === undefined || (this.#shared === undefined && this.worksForOthers(accountId))) return;
    const untilMs = this.#clock.monotonic();
    this.#lastOutage = { sinceMs: untilMs - Math.max(this.#clock.now() - outage.beganAt, 0), untilMs };
    this.record.clear();
  }

  /** Notes that the model answers an account now, and closes the shared state. */
  #works(accountId: string): void {
    this.#inARow = 0;
    this.#limited = undefined;
    if (this.#shared !== undefined) this.#latest = [];
    this.#shared = undefined;
    const atMs = this.#clock.monotonic();
    if (this.#success?.accountId === accountId) {
      this.#success.atMs = atMs;
      return;
    }
    this.#othersSuccess = this.#success;
    this.#success = { accountId, atMs };
  }

  #failed(failure: Failure, { isProbe, accountId }: { readonly isProbe: boolean; readonly accountId: string }): void {
    const isLimit = failure.code === "upstream_rate_limited";
    if (isLimit ? failure.retryAfterMs === undefined : failure.requestBound || !COUNTED.has(failure.code)) return;
    if (isLimit) {
      if (!this.worksForOthers(accountId)) this.#openFor(this.#recordOf(accountId), failure, failure.retryAfterMs!);
    } else {
      this.record.add(accountId, { failed: true });
      this.#countOwn(failure, { isProbe, accountId });
    }
    if (this.#concernsAll(accountId, { isLimit, isProbe })) {
      const untilMs = this.#clock.monotonic() + NEXT_PROBE_MS;
      this.#shared = prolonged(this.#shared, { failure, untilMs, clock: this.#clock });
    }
  }

  /** Whether a failure opens the breaker for all accounts. While it is open for all, only the failure of a probe does. */
  #concernsAll(
    accountId: string,
    { isLimit, isProbe }: { readonly isLimit: boolean; readonly isProbe: boolean },
  ): boolean {
    if (this.#shared !== undefined) return isProbe;
    if (this.#hasWorkedForOthers(accountId, this.#clock.monotonic() - OTHERS_OF_ALL_MS)) return false;
    return isLimit ? this.#limitsSeveral(accountId) : this.#failsForSeveral(accountId);
  }

  #countOwn(failure: Failure, { isProbe, accountId }: { readonly isProbe: boolean; readonly accountId: string }): void {
    const record = this.#recordOf(accountId);
    const { failures, openMs, maxOpenMs } = this.#options();
    record.inARow += 1;
    noteIn(record.latest, true);
    const isTripped = record.inARow >= failures || hasMostlyFailed(record.latest);
    // While the breaker is open for the account, only the probe counts, not attempts from before.
    if (isProbe || (isTripped && record.outage === undefined)) {
      const openForMs = Math.min(Math.max(record.nextOpenMs, openMs), maxOpenMs);
      this.#openFor(record, failure, openForMs);
      record.nextOpenMs = openForMs * 2;
    }
  }

  #openFor(record: AccountRecord, failure: Failure, openForMs: number): void {
    const untilMs = this.#clock.monotonic() + Math.min(openForMs, MAX_RATE_LIMIT_MS);
    record.outage = prolonged(record.outage, { failure, untilMs, clock: this.#clock });
  }

  /** Counts a failure. Whether failures in a row, or more than half of the latest attempts, are failures of several accounts. */
  #failsForSeveral(accountId: string): boolean {
    this.#inARow += 1;
    this.#note(accountId);
    const failed = this.#latest.filter((account) => account !== undefined);
    const isInARow = this.#inARow >= this.#options().failures && !isOfOne(this.#latest.slice(-this.#inARow));
    return isInARow || (this.#latest.length === WINDOW && failed.length > WINDOW / 2 && !isOfOne(failed));
  }

  /** Notes a rate limit. Whether another account had one within OTHERS_MS, without a success in between. */
  #limitsSeveral(accountId: string): boolean {
    const before = this.#limited;
    const atMs = this.#clock.monotonic();
    this.#limited = { accountId, atMs };
    return before !== undefined && before.accountId !== accountId && before.atMs >= atMs - OTHERS_MS;
  }

  #hasWorkedForOthers(accountId: string, sinceMs: number): boolean {
    const success = this.#success?.accountId === accountId ? this.#othersSuccess : this.#success;
    return success !== undefined && success.atMs > sinceMs;
  }

  #recordOf(accountId: string): AccountRecord {
    let record = this.#accounts.get(accountId);
    if (record !== undefined) return record;
    record = { inARow: 0, latest: [], nextOpenMs: 0, outage: undefined };
    this.#accounts.set(accountId, record);
    if (this.#accounts.size > MAX_ACCOUNTS) this.#accounts.delete(this.#accounts.keys().next().value!);
    return record;
  }

  /** Notes a success of an account that has a record, and removes the record when it has no failures left. */
  #noteSuccess(accountId: string): void {
    const record = this.#accounts.get(accountId);
    if (record === undefined) return;
    record.inARow = 0;
    noteIn(record.latest, false);
    if (record.outage === undefined && !record.latest.includes(true)) this.#accounts.delete(accountId);
  }

  /** Notes an attempt of any account: the account of a failure, undefined for a success. */
  #note(failed: string | undefined): void {
    noteIn(this.#latest, failed);
  }

  /** The outage to show: the shared one, or the longest of an account while the model works for no other account. */
  #current(): Outage | undefined {
    if (this.#shared !== undefined) return this.#shared;
    let longest: Outage | undefined;
    for (const [accountId, { outage }] of this.#accounts) {
      if (outage === undefined || this.worksForOthers(accountId)) continue;
      if (longest === undefined || outage.untilMs > longest.untilMs) longest = outage;
    }
    return longest;
  }

  /** The failure while open: `upstream_rate_limited` after a rate limit, otherwise `upstream_unavailable`. */
  #refuse({ untilMs, last }: Outage): Failure {
    const retryAfterMs = Math.max(untilMs - this.#clock.monotonic(), 1);
    const limited = last.code === "upstream_rate_limited";
    const code = limited ? "upstream_rate_limited" : "upstream_unavailable";
    const message = limited
      ? last.message
      : "The upstream model is temporarily disabled after repeated failures (circuit breaker open).";
    return new Failure(code, message, { retryAfterMs, transient: false, cause: last });
  }
}

/** Adds an attempt to the latest WINDOW attempts. */
function noteIn<T>(latest: T[], attempt: T): void {
  latest.push(attempt);
  if (latest.length > WINDOW) latest.shift();
}

/** Whether more than half of the latest WINDOW attempts failed; false for fewer attempts. */
const hasMostlyFailed = (latest: readonly boolean[]): boolean =>
  latest.length === WINDOW && latest.filter((failed) => failed).length > WINDOW / 2;

const isOfOne = (failures: readonly (string | undefined)[]): boolean =>
  failures.every((account) => account === failures[0]);

/** A new outage, or a continued one with a further failure. Its open time is never shortened. */
function prolonged(
  outage: Outage | undefined,
  { failure, untilMs, clock }: { readonly failure: Failure; readonly untilMs: number; readonly clock: Clock },
): Outage {
  const sinceMs = clock.monotonic();
  if (outage === undefined) {
    const probedMs = new BoundedMap<string, number>(MAX_ACCOUNTS);
    return { beganAt: clock.now(), sinceMs, untilMs, probe: undefined, probedMs, last: failure };
  }
  outage.sinceMs = sinceMs;
  outage.untilMs = Math.max(outage.untilMs, untilMs);
  outage.last = failure;
  return outage;
}
