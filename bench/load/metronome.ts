// A thread that reports when calls are due, to a tenth of a millisecond: Node's timers have a resolution of 1 ms, about
// the duration of a call. Its messages are the numbers of calls that have become due.
import { parentPort } from "node:worker_threads";

/** The thread's start message. */
export interface Beat {
  /** On the clock of `nowMs`. */
  readonly startMs: number;
  readonly intervalMs: number;
  readonly count: number;
}

/** A clock shared by all threads. */
export function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Never notified: used with `Atomics.wait` as a sleep. */
const never = new Int32Array(new SharedArrayBuffer(4));

parentPort?.on("message", ({ startMs, intervalMs, count }: Beat) => {
  for (let sent = 0; sent < count;) {
    const waitMs = startMs + sent * intervalMs - nowMs();
    if (waitMs > 0) Atomics.wait(never, 0, 0, waitMs);
    const due = Math.min(count, Math.floor((nowMs() - startMs) / intervalMs) + 1);
    if (due > sent) parentPort?.postMessage(due - sent, []);
    sent = Math.max(sent, due);
  }
});
