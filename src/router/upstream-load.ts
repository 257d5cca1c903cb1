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

  /** Milliseconds to expect; 0 without samples. Calls that wait longer than usual raise it before they are answered. */
  expectedMs(clock: Pick<Clock, "monotonic">): number {
    return this.#waiting === 0 ? this.#averageMs : Math.max(this.#averageMs, clock.monotonic() - this.#silentSinceMs);
  }

  /** Lets the next sample replace all before it. */
  forget(): void {
    this.#samples = 0;
  }

  begin(nowMs: number): void {
    if (this.#waiting === 0) this.#silentSinceMs = nowMs;
    this.#waiting += 1;
  }

  /** `sampleMs`: undefined when the call says nothing about the waiting time. */
  end(nowMs: number, sampleMs: number | undefined): void {
    this.#waiting -= 1;
    if (sampleMs === undefined) return;
    this.#silentSinceMs = nowMs;
    this.#samples += 1;
    this.#averageMs += (sampleMs - this.#averageMs) * Math.max(1 / this.#samples, NEWEST);
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
      const nowMs = this.#clock.monotonic();
      const elapsedMs = nowMs - startMs;
      const sampleMs = how === "failed" ? Math.max(elapsedMs, FAILED_MS) : elapsedMs;
      latency.end(nowMs, how === "unknown" ? undefined : sampleMs);
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

/** Time in ms that a failed call counts as, at least: one that fails at once must not look like the fastest. */
const FAILED_MS = 10_000;

/** One counted call. */
export interface LoadedCall {
  /** The first content of a stream has arrived. */
  answered(): void;
  /** The call has ended; `how` counts if it has not been answered before. */
  end(how: Ended): void;
}
