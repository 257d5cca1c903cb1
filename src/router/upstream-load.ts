import { BoundedMap } from "../core/bounded-map.ts";
import type { Clock } from "../core/clock.ts";
import type { Mode } from "../core/router.ts";
import { percentile } from "./latest-samples.ts";

/** Weight of the newest sample in the moving average, from 1 / NEWEST samples on. */
const NEWEST = 0.1;
/** Accounts with an average per upstream model and mode; the account without an answer for the longest is evicted. */
const MAX_ACCOUNTS = 64;
/** Time after an account's answer in which its own average is used. */
const OWN_MS = 30_000;

/** Waiting time of one account: an exponentially weighted moving average. */
interface Met {
  averageMs: number;
  samples: number;
  atMs: number;
}

/** Waiting calls of one account. */
interface Waiting {
  readonly sinceMs: number;
  calls: number;
}

/**
 * Waiting time of an upstream model in one mode. For an account with an answer in the last OWN_MS it is the account's own average,
 * for any other the median of all accounts, because one account's requests may take longer than those of others.
 */
class Latency {
  readonly #accounts = new BoundedMap<string, Met>(MAX_ACCOUNTS);
  /** Computed on first use after a sample. */
  #medianMs: number | undefined = 0;
  #isForgotten = false;
  /** Waiting calls by account, in the order in which the accounts began to wait. */
  readonly #waiting = new Map<string, Waiting>();
  /** Time of the last answer or failure, of any account. */
  #endedAtMs = -Infinity;
  #failedAtMs: number | undefined;

  /** Expected milliseconds for a call of an account; 0 without samples. Calls in flight that wait longer than usual raise it. */
  expectedMs(accountId: string, nowMs: number): number {
    const own = this.#accounts.get(accountId);
    const knownMs = own !== undefined && nowMs - own.atMs < OWN_MS ? own.averageMs : this.#median();
    const averageMs = this.#failedWithin(FAILED_MS, nowMs) ? Math.max(knownMs, FAILED_MS) : knownMs;
    return Math.max(averageMs, nowMs - Math.max(this.#silentSince(accountId), this.#endedAtMs));
  }

  /** Makes the next sample replace all earlier ones. */
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

  /** Median of the accounts' averages; of an even number, the smaller middle one. */
  #median(): number {
    if (this.#medianMs !== undefined) return this.#medianMs;
    const averages = [...this.#accounts.values()].map(({ averageMs }) => averageMs);
    return (this.#medianMs = percentile(
      averages.toSorted((one, other) => one - other),
      50,
    ));
  }

  /** Time since which this account, or any two accounts, wait. A single other account may wait only for its own long requests. */
  #silentSince(accountId: string): number {
    const ownMs = this.#waiting.get(accountId)?.sinceMs ?? Infinity;
    if (this.#waiting.size < 2) return ownMs;
    const [, second] = this.#waiting.values();
    return Math.min(ownMs, second!.sinceMs);
  }

  /** Whether the latest outcome is a failure that is less than `ms` old. */
  #failedWithin(ms: number, nowMs: number): boolean {
    return this.#failedAtMs !== undefined && nowMs - this.#failedAtMs < ms;
  }
}

/** Calls in flight and waiting times of one upstream model, as seen by this process. */
export class UpstreamLoad {
  readonly #clock: Pick<Clock, "monotonic">;
  /** Separate by mode: a whole answer takes longer than the first content of a stream. */
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

  /** Calls in flight of one account. */
  inFlightOf(accountId: string): number {
    return this.#inFlightOf.get(accountId) ?? 0;
  }

  /** Milliseconds since the last call began. */
  get idleMs(): number {
    return this.#clock.monotonic() - this.#calledMs;
  }

  /**
   * Expected milliseconds of an account's call until the first content of a stream, or the end of a whole answer; 0 when unknown.
   * `nowMs`: the clock's `monotonic`, so that a comparison of several models reads the clock once.
   */
  expectedMs(mode: Mode, accountId: string, nowMs = this.#clock.monotonic()): number {
    return this.#latencies[mode].expectedMs(accountId, nowMs);
  }

  /** Notes the time of a call that is not counted, for `idleMs`. */
  called(): void {
    this.#calledMs = this.#clock.monotonic();
  }

  /** Makes the next call's time replace all earlier ones. */
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

/** How a call has ended. `unknown`: its end does not show the health of the upstream model. */
type Ended = "answered" | "failed" | "unknown";

/**
 * For FAILED_MS after a failed call, at least FAILED_MS is expected: a model that fails at once must not look like the fastest. It is
 * not added to the average, which would need hundreds of answers to decay.
 */
const FAILED_MS = 10_000;

/** One counted call. */
export interface LoadedCall {
  /** Call it when the first content of a stream has arrived. */
  answered(): void;
  /** Call it when the call has ended. `how` is ignored after `answered`. */
  end(how: Ended): void;
}
