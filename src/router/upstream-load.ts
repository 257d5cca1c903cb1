import type { Clock } from "../core/clock.ts";
import type { Mode } from "../core/router.ts";

/** Share of the newest sample in an average, once there are as many samples as its inverse. */
const NEWEST = 0.1;

/** Waiting time of an upstream model in one mode: an exponentially weighted moving average. */
class Latency {
  #averageMs = 0;
  #samples = 0;
  #waiting = 0;
  /** Since when calls have waited without any of them being answered. */
  #silentSinceMs = 0;
  #failedAtMs: number | undefined;

  /** Milliseconds to expect; 0 without samples. Calls that wait longer than usual raise it before they are answered. */
  expectedMs(clock: Pick<Clock, "monotonic">): number {
    const nowMs = clock.monotonic();
    const averageMs = this.#failedWithin(FAILED_MS, nowMs) ? Math.max(this.#averageMs, FAILED_MS) : this.#averageMs;
    return this.#waiting === 0 ? averageMs : Math.max(averageMs, nowMs - this.#silentSinceMs);
  }

  /** Lets the next sample replace all before it. */
  forget(): void {
    this.#samples = 0;
  }

  begin(nowMs: number): void {
    if (this.#waiting === 0) this.#silentSinceMs = nowMs;
    this.#waiting += 1;
  }

  end(how: Ended, { startMs, nowMs }: { readonly startMs: number; readonly nowMs: number }): void {
    this.#waiting -= 1;
    if (how === "unknown") return;
    this.#silentSinceMs = nowMs;
    this.#failedAtMs = how === "failed" ? nowMs : undefined;
    if (how === "failed") return;
    this.#samples += 1;
    this.#averageMs += (nowMs - startMs - this.#averageMs) * Math.max(1 / this.#samples, NEWEST);
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
  #calledMs = -Infinity;

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** Milliseconds since the last call began. */
  get idleMs(): number {
    return this.#clock.monotonic() - this.#calledMs;
  }

  /** Milliseconds to expect until the first content of a stream, or the end of a whole answer; 0 when it is not known. */
  expectedMs(mode: Mode): number {
    return this.#latencies[mode].expectedMs(this.#clock);
  }

  /** Notes a call that is not counted. */
  called(): void {
    this.#calledMs = this.#clock.monotonic();
  }

  /** Lets the next call's time replace what is known. */
  forget(mode: Mode): void {
    this.#latencies[mode].forget();
  }

  /** Counts a call until its `end`. */
  begin(mode: Mode): LoadedCall {
    this.#inFlight += 1;
    const latency = this.#latencies[mode];
    const startMs = this.#clock.monotonic();
    latency.begin(startMs);
    this.#calledMs = startMs;
    let isWaiting = true;
    const stopWaiting = (how: Ended): void => {
      if (!isWaiting) return;
      isWaiting = false;
      latency.end(how, { startMs, nowMs: this.#clock.monotonic() });
    };
    return {
      answered: () => stopWaiting("answered"),
      end: (how) => {
        stopWaiting(how);
        this.#inFlight -= 1;
      },
    };
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
