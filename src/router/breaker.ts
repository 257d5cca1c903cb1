import type { Clock } from "../core/clock.ts";
import { Failure, type FailureCode } from "../core/failure.ts";
import type { Opening } from "./upstream-health.ts";

/** When a breaker opens and for how long. */
export interface BreakerOptions {
  /** Failures in a row that open it. */
  readonly failures: number;
  /** How long it rests the first time; doubled for each failed probe, up to `maxOpenMs`. */
  readonly openMs: number;
  readonly maxOpenMs: number;
}

/** However long a provider asks us to wait, it is asked again after this. */
const MAX_RATE_LIMIT_OPEN_MS = 10 * 60_000;

/** It also opens when more than half of this many latest attempts failed. */
const WINDOW = 20;

/** Failures that say the upstream model is unwell. A caller's mistake, or a caller who left, says nothing about it. */
const COUNTED: ReadonlySet<FailureCode> = new Set([
  "upstream_unavailable",
  "upstream_timeout",
  "upstream_protocol",
  "upstream_refused_us",
]);

/** Permission to make one attempt; exactly one of its methods must be called when the attempt is over. */
export interface BreakerPermit {
  /** Its first content is in: the upstream is alive, whatever becomes of this answer. One of the others follows. */
  committed(): void;
  /** The upstream did its part. */
  succeeded(): void;
  /** It failed in this way. Returns for how long the model rests now, if it does. */
  failed(failure: Failure): number | undefined;
  /** Nothing was learned: the caller left, or the request was at fault. */
  abandoned(): void;
}

/**
 * The circuit breaker of one upstream model. Closed, it lets everything through; after too many failures it opens and
 * lets nothing through for a while; then a single probe decides whether it closes again. A rate limit lets the model
 * rest for as long as the provider asked.
 */
export class Breaker {
  readonly #options: BreakerOptions;
  readonly #clock: Clock;
  #inARow = 0;
  #latest: boolean[] = [];
  #openUntilMs: number | undefined;
  /** By the wall's clock. */
  #openSinceMs: number | undefined;
  #openMs: number;
  #probing = false;
  #last: Failure | undefined;

  constructor(options: BreakerOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
    this.#openMs = options.openMs;
  }

  /** `closed`, `open`, or `half_open` while a probe is due or under way. */
  get state(): "closed" | "open" | "half_open" {
    if (this.#openUntilMs === undefined) return "closed";
    return this.#clock.monotonic() < this.#openUntilMs ? "open" : "half_open";
  }

  /** Undefined while it is closed. Probes that fail do not begin another one. */
  get rest(): Opening | undefined {
    if (this.#openUntilMs === undefined) return undefined;
    const remainingMs = Math.max(this.#openUntilMs - this.#clock.monotonic(), 0);
    return { sinceMs: this.#openSinceMs!, remainingMs, isProbed: remainingMs === 0 && this.#probing };
  }

  /** A permit for one attempt, or the failure to answer with while the model rests. */
  admit(): BreakerPermit | Failure {
    const probe = this.state === "half_open" && !this.#probing;
    if (this.state !== "closed" && !probe) return this.#resting();
    this.#probing = probe;
    let undecided = probe;
    /** Ends the probe, if this is one and it has not been decided before; says whether it did. */
    const decide = (): boolean => {
      if (!undecided) return false;
      undecided = false;
      this.#probing = false;
      return true;
    };
    return {
      committed: () => {
        if (decide()) this.#close();
      },
      succeeded: () => {
        if (decide()) this.#close();
        this.#inARow = 0;
        this.#note(true);
      },
      failed: (failure) => {
        this.#failed(failure, decide());
        return this.state === "open" ? this.#openUntilMs! - this.#clock.monotonic() : undefined;
      },
      abandoned: () => void decide(),
    };
  }

  #close(): void {
    this.#openUntilMs = undefined;
    this.#openSinceMs = undefined;
    this.#openMs = this.#options.openMs;
    this.#latest = [];
    this.#inARow = 0;
  }

  #failed(failure: Failure, probe: boolean): void {
    if (failure.code === "upstream_rate_limited") {
      if (failure.retryAfterMs !== undefined)
        this.#rest(failure, Math.min(failure.retryAfterMs, MAX_RATE_LIMIT_OPEN_MS));
      return;
    }
    if (failure.requestBound || !COUNTED.has(failure.code)) return;
    this.#inARow += 1;
    this.#note(false);
    if (!probe && !this.#isTripped()) return;
    this.#rest(failure, this.#openMs);
    this.#openMs = Math.min(this.#openMs * 2, this.#options.maxOpenMs);
  }

  /** Whether one more failure opens it. Open, it does not: attempts from before are late news, and only a probe counts. */
  #isTripped(): boolean {
    if (this.#openUntilMs !== undefined) return false;
    const failures = this.#latest.filter((ok) => !ok).length;
    return this.#inARow >= this.#options.failures || (this.#latest.length >= WINDOW && failures > WINDOW / 2);
  }

  #note(ok: boolean): void {
    this.#latest.push(ok);
    if (this.#latest.length > WINDOW) this.#latest.shift();
  }

  #rest(failure: Failure, openMs: number): void {
    this.#last = failure;
    this.#openSinceMs ??= this.#clock.now();
    this.#openUntilMs = Math.max(this.#openUntilMs ?? 0, this.#clock.monotonic() + openMs);
  }

  /** Whatever opened it, the model is unavailable now; only a rate limit stays one. */
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
