import { BoundedMap } from "../core/bounded-map.ts";
import type { Clock } from "../core/clock.ts";
import type { Mode } from "../core/router.ts";
import { percentile } from "./latest-samples.ts";

/** Share of the newest sample in an average, once there are as many samples as its inverse. */
const NEWEST = 0.1;
/** Accounts whose times are kept for each upstream model and mode; the one without an answer for the longest is forgotten. */
const MAX_ACCOUNTS = 64;
/** Time after an answer in which an account's own average is what it expects. */
const OWN_MS = 30_000;

/** What one account has met: an exponentially weighted moving average. */
interface Met {
  averageMs: number;
  samples: number;
  atMs: number;
}

/** Calls of one account that wait. */
interface Waiting {
  readonly sinceMs: number;
  calls: number;
}

/**
 * Waiting time of an upstream model in one mode. An account with answers of late expects what it has met itself, any other one
 * the median of all: requests of one account may take longer than those of others, by what they ask.
 */
class Latency {
  readonly #accounts = new BoundedMap<string, Met>(MAX_ACCOUNTS);
  /** Computed on first use after a sample. */
  #medianMs: number | undefined = 0;
  #isForgotten = false;
  /** By account, in the order in which they began to wait. */
  readonly #waiting = new Map<string, Waiting>();
  /** When a call of any account was answered or failed last. */
  #endedAtMs = -Infinity;
  #failedAtMs: number | undefined;

  /** Milliseconds that an account expects; 0 without samples. Calls that wait longer than usual raise it before they are answered. */
  expectedMs(accountId: string, nowMs: number): number {
    const own = this.#accounts.get(accountId);
    const knownMs = own !== undefined && nowMs - own.atMs < OWN_MS ? own.averageMs : this.#median();
    const averageMs = this.#failedWithin(FAILED_MS, nowMs) ? Math.max(knownMs, FAILED_MS) : knownMs;
    return Math.max(averageMs, nowMs - Math.max(this.#silentSince(accountId), this.#endedAtMs));
  }

  /** Lets the next sample replace all before it. */
  forget(): void {
    this.#isForgotten = true;
  }

  begin(accountId: string, nowMs: number): void {
    const waiting = this.#waiting.get(accountId);
    if (waiting === undefined) this.#waiting.set(accountId, { sinceMs: nowMs, calls: 1 });
    else waiting.calls += 1;
  }

  end(
    how: Ended,
    { accountId, startMs, nowMs }: { readonly accountId: string; readonly startMs: number; readonly nowMs: number },
  ): void {
    const waiting = this.#waiting.get(accountId)!;
    waiting.calls -= 1;
    if (waiting.calls === 0) this.#waiting.delete(accountId);
    if (how === "unknown") return;
    this.#endedAtMs = nowMs;
    this.#failedAtMs = how === "failed" ? nowMs : undefined;
    if (how === "answered") this.#add(accountId, { ms: nowMs - startMs, nowMs });
  }

  #add(accountId: string, { ms, nowMs }: { readonly ms: number; readonly nowMs: number }): void {
    if (this.#isForgotten) this.#accounts.clear();
    this.#isForgotten = false;
    const met = this.#accounts.get(accountId) ?? { averageMs: 0, samples: 0, atMs: nowMs };
    met.samples += 1;
    met.atMs = nowMs;
    met.averageMs += (ms - met.averageMs) * Math.max(1 / met.samples, NEWEST);
    this.#accounts.set(accountId, met);
    this.#medianMs = undefined;
  }

  /** Of two in the middle the smaller one. */
  #median(): number {
    if (this.#medianMs !== undefined) return this.#medianMs;
    const averages = [...this.#accounts.values()].map(({ averageMs }) => averageMs);
    return (this.#medianMs = percentile(
      averages.toSorted((one, other) => one - other),
      50,
    ));
  }

  /** Since when the account itself waits, or a second one: a single other one may wait for what only its requests take. */
  #silentSince(accountId: string): number {
    const ownMs = this.#waiting.get(accountId)?.sinceMs ?? Infinity;
    if (this.#waiting.size < 2) return ownMs;
    const [, second] = this.#waiting.values();
    return Math.min(ownMs, second!.sinceMs);
  }

  /** Whether the last verdict is a failure of that time. */
  #failedWithin(ms: number, nowMs: number): boolean {
    return this.#failedAtMs !== undefined && nowMs - this.#failedAtMs < ms;
  }
}

/** Calls in flight and waiting times of one upstream model, as seen by this process. */
export class UpstreamLoad {
  readonly #clock: Pick<Clock, "monotonic">;
  /** First content of streams, and whole answers: these take longer, by their length. */
  readonly #latencies: Readonly<Record<Mode, Latency>> = { stream: new Latency(), whole: new Latency() };
  #inFlight = 0;
  readonly #inFlightOf = new Map<string, number>();
  #calledMs = -Infinity;

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** Of one account. */
  inFlightOf(accountId: string): number {
    return this.#inFlightOf.get(accountId) ?? 0;
  }

  /** Milliseconds since the last call began. */
  get idleMs(): number {
    return this.#clock.monotonic() - this.#calledMs;
  }

  /**
   * Milliseconds that an account is to expect until the first content of a stream, or the end of a whole answer; 0 when it is not known.
   * `nowMs`: the clock's `monotonic`, for those who ask several.
   */
  expectedMs(mode: Mode, accountId: string, nowMs = this.#clock.monotonic()): number {
    return this.#latencies[mode].expectedMs(accountId, nowMs);
  }

  /** Notes a call that is not counted. */
  called(): void {
    this.#calledMs = this.#clock.monotonic();
  }

  /** Lets the next call's time replace what is known. */
  forget(mode: Mode): void {
    this.#latencies[mode].forget();
  }

  /** Counts a call of an account until its `end`. */
  begin(mode: Mode, accountId: string): LoadedCall {
    this.#count(accountId, 1);
    const latency = this.#latencies[mode];
    const startMs = this.#clock.monotonic();
    latency.begin(accountId, startMs);
    this.#calledMs = startMs;
    let isWaiting = true;
    const stopWaiting = (how: Ended): void => {
      if (!isWaiting) return;
      isWaiting = false;
      latency.end(how, { accountId, startMs, nowMs: this.#clock.monotonic() });
    };
    return {
      answered: () => stopWaiting("answered"),
      end: (how) => {
        stopWaiting(how);
        this.#count(accountId, -1);
      },
    };
  }

  #count(accountId: string, change: 1 | -1): void {
    this.#inFlight += change;
    const own = this.inFlightOf(accountId) + change;
    if (own === 0) this.#inFlightOf.delete(accountId);
    else this.#inFlightOf.set(accountId, own);
  }
}

/** How a call has ended: `unknown` when that says nothing of the upstream model. */
export type Ended = "answered" | "failed" | "unknown";

/**
 * Time in ms that is expected, at least, for as long after a failed call: one that fails at once must not look like the fastest. It
 * is no part of the average, which would need hundreds of answers to forget it.
 */
const FAILED_MS = 10_000;

/** One counted call. */
export interface LoadedCall {
  /** The first content of a stream has arrived. */
  answered(): void;
  /** The call has ended; `how` counts if it has not been answered before. */
  end(how: Ended): void;
}
