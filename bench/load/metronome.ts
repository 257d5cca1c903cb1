// A thread that says when the next calls are due, to a tenth of a millisecond: timers of Node know whole milliseconds
// only, as long as a whole call takes. Its messages are numbers of calls that have become due.
import { parentPort } from "node:worker_threads";

/** What it is told. */
export interface Beat {
  /** On the clock of `nowMs`. */
  readonly startMs: number;
  readonly intervalMs: number;
  readonly count: number;
}

/** A clock that all threads share. */
export function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Nobody wakes it: whoever waits on it waits for the time to pass. */
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
