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

/** Longest open time after a provider's `retry-after`. */
const MAX_RATE_LIMIT_OPEN_MS = 10 * 60_000;

/** The breaker also opens when more than half of the latest attempts, this many, failed. */
const WINDOW = 20;

/** Time after a success of another account in which failures of one account alone do not open the breaker. */
const OTHERS_MS = 10_000;

/** Failures that count against the health of the upstream model; invalid requests and disconnected callers do not. */
const COUNTED: ReadonlySet<FailureCode> = new Set([
  "upstream_unavailable",
  "upstream_timeout",
  "upstream_protocol",
  "upstream_refused_us",
]);

/** Time that a probe of one account has before one of another account is permitted beside it. */
const PROBE_MS = 5_000;

/** What an account met last: a success, a rate limit, or the beginning of a probe. */
interface Met {
  readonly accountId: string;
  atMs: number;
}

/** Permission for one attempt. Exactly one of the methods but `alive` must be called at its end. */
export interface BreakerPermit {
  /** The first content has arrived, so the upstream works. One of the other calls follows. */
  committed(): void;
  /** The attempt succeeded. */
  succeeded(): void;
  /** The attempt failed. Returns how long the breaker is open now, if it is. */
  failed(failure: Failure): number | undefined;
  /** No verdict: the caller disconnected, or the request caused the failure. */
  abandoned(): void;
}

/**
 * The circuit breaker of one upstream model. Closed, it permits all attempts; after too many failures it opens and permits
 * none; after the open time a single probe decides whether it closes. A rate limit opens it for the time that the provider
 * asked for. Failures and rate limits of one account alone do not open it while the model works for others: requests that never
 * succeed would otherwise keep all callers out.
 */
export class Breaker {
  readonly #options: BreakerOptions;
  readonly #clock: Clock;
  #inARow = 0;
  /** Of the latest attempts: undefined for a success, else the account. */
  #latest: (string | undefined)[] = [];
  /** The last success, and that of another account before it. */
  #success: Met | undefined;
  #othersSuccess: Met | undefined;
  #limited: Met | undefined;
  #openUntilMs: number | undefined;
  /** Wall-clock time. */
  #openSinceMs: number | undefined;
  #openMs: number;
  /** The undecided probe; one that was replaced counts like any other attempt. */
  #probe: Met | undefined;
  #last: Failure | undefined;
  /** The last outage that has ended. */
  #outage: Span | undefined;
  /** By the clock's `monotonic`. */
  #outSinceMs = 0;
  /** What the breaker counts. */
  readonly record: TrackRecord;

  constructor(options: BreakerOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
    this.#openMs = options.openMs;
    this.record = new TrackRecord(clock);
  }

  /** The last outage that has ended; undefined without one. */
  get outage(): Span | undefined {
    return this.#outage;
  }

  /** `closed`, `open`, or `half_open` while a probe is due or in flight. */
  get state(): "closed" | "open" | "half_open" {
    if (this.#openUntilMs === undefined) return "closed";
    return this.#clock.monotonic() < this.#openUntilMs ? "open" : "half_open";
  }

  /** Start of the current outage; undefined while closed. A failed probe does not start another one. */
  get rest(): Opening | undefined {
    if (this.#openUntilMs === undefined) return undefined;
    const remainingMs = Math.max(this.#openUntilMs - this.#clock.monotonic(), 0);
    return { sinceMs: this.#openSinceMs!, remainingMs, isProbed: remainingMs === 0 && this.#probe !== undefined };
  }

  /** Whether an attempt succeeded in the last `ms`. */
  hasServedIn(ms: number): boolean {
    return this.#success !== undefined && this.#clock.monotonic() - this.#success.atMs < ms;
  }

  /** Whether `admit` would permit an attempt. */
  mayAdmit(accountId: string): boolean {
    const { state } = this;
    return state === "closed" || (state === "half_open" && this.#mayProbe(accountId));
  }

  /** A permit for one attempt, or the failure to return while the breaker is open. */
  admit(accountId: string): BreakerPermit | Failure {
    if (!this.mayAdmit(accountId)) return this.#resting();
    const probe = this.state === "closed" ? undefined : { accountId, atMs: this.#clock.monotonic() };
    if (probe !== undefined) this.#probe = probe;
    /** Ends the probe if this permit is the undecided one; returns whether it was. */
    const decide = (): boolean => {
      if (probe === undefined || this.#probe !== probe) return false;
      this.#probe = undefined;
      return true;
    };
    return {
      committed: () => {
        if (decide()) this.#close();
      },
      succeeded: () => {
        if (decide()) this.#close();
        this.#inARow = 0;
        this.#note(undefined);
        this.#noteSuccess(accountId);
        this.record.add(accountId, { failed: false });
      },
      failed: (failure) => {
        this.#failed(failure, { probe: decide(), accountId });
        return this.state === "open" ? this.#openUntilMs! - this.#clock.monotonic() : undefined;
      },
      abandoned: () => void decide(),
    };
  }

  /** Whether a probe of this account may begin: without another one, or beside one of another account that takes long. */
  #mayProbe(accountId: string): boolean {
    if (this.#probe === undefined) return true;
    return this.#probe.accountId !== accountId && this.#clock.monotonic() - this.#probe.atMs >= PROBE_MS;
  }

  #close(): void {
    this.#outage = { sinceMs: this.#outSinceMs, untilMs: this.#clock.monotonic() };
    this.#openUntilMs = undefined;
    this.#openSinceMs = undefined;
    this.#openMs = this.#options.openMs;
    this.#latest = [];
    this.#inARow = 0;
    this.record.clear();
  }

  #failed(failure: Failure, { probe, accountId }: { readonly probe: boolean; readonly accountId: string }): void {
    if (failure.code === "upstream_rate_limited") {
      if (failure.retryAfterMs !== undefined && this.#limitsAll(accountId))
        this.#rest(failure, Math.min(failure.retryAfterMs, MAX_RATE_LIMIT_OPEN_MS));
      return;
    }
    if (failure.requestBound || !COUNTED.has(failure.code)) return;
    this.#inARow += 1;
    this.#note(accountId);
    this.record.add(accountId, { failed: true });
    if (!probe && !this.#isTripped()) return;
    this.#rest(failure, this.#openMs);
    this.#openMs = Math.min(this.#openMs * 2, this.#options.maxOpenMs);
  }

  /** Whether this failure opens the breaker. While it is open, only the probe counts, not attempts from before. */
  #isTripped(): boolean {
    if (this.#openUntilMs !== undefined) return false;
    if (this.#inARow >= this.#options.failures) return !this.#isOfOne(this.#latest.slice(-this.#inARow));
    const failures = this.#latest.filter((accountId) => accountId !== undefined);
    return this.#latest.length >= WINDOW && failures.length > WINDOW / 2 && !this.#isOfOne(failures);
  }

  /** Whether these failures are all of one account, while the model works for another one. */
  #isOfOne(failures: readonly (string | undefined)[]): boolean {
    const [accountId] = failures;
    return failures.every((other) => other === accountId) && this.#worksForOthers(accountId);
  }

  /** Whether a rate limit holds for all: the model does not work for others, or limits another one too. */
  #limitsAll(accountId: string): boolean {
    const others = this.#limited;
    const atMs = this.#clock.monotonic();
    this.#limited = { accountId, atMs };
    const limitsOthers = others !== undefined && others.accountId !== accountId && others.atMs >= atMs - OTHERS_MS;
    return limitsOthers || !this.#worksForOthers(accountId);
  }

  #worksForOthers(accountId: string | undefined): boolean {
    const success = this.#success?.accountId === accountId ? this.#othersSuccess : this.#success;
    return success !== undefined && success.atMs >= this.#clock.monotonic() - OTHERS_MS;
  }

  #noteSuccess(accountId: string): void {
    const atMs = this.#clock.monotonic();
    if (this.#success?.accountId === accountId) {
      this.#success.atMs = atMs;
      return;
    }
    this.#othersSuccess = this.#success;
    this.#success = { accountId, atMs };
  }

  /** Notes an attempt: the account of a failure, undefined for a success. */
  #note(failed: string | undefined): void {
    this.#latest.push(failed);
    if (this.#latest.length > WINDOW) this.#latest.shift();
  }

  #rest(failure: Failure, openMs: number): void {
    this.#last = failure;
    if (this.#openUntilMs === undefined) this.#outSinceMs = this.#clock.monotonic();
    this.#openSinceMs ??= this.#clock.now();
    this.#openUntilMs = Math.max(this.#openUntilMs ?? 0, this.#clock.monotonic() + openMs);
  }

  /** The failure while open: `upstream_rate_limited` after a rate limit, otherwise `upstream_unavailable`. */
  #resting(): Failure {
    const retryAfterMs = Math.max((this.#openUntilMs ?? 0) - this.#clock.monotonic(), 1);
    const limited = this.#last?.code === "upstream_rate_limited";
    const code = limited ? "upstream_rate_limited" : "upstream_unavailable";
    const message = limited
      ? this.#last!.message
      : "The upstream model is temporarily disabled after repeated failures (circuit breaker open).";
    return new Failure(code, message, { retryAfterMs, transient: false, cause: this.#last });
  }
}
