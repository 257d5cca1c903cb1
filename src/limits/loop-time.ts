import type { Clock } from "../core/clock.ts";

/** How much of a wait one step is. */
const STEP_MS = 10;

/**
 * Calls back when the event loop has had this much time, unless the returned function is called before. However late a
 * step comes, it counts as one: while this process is busy it can neither send a command nor read the answer, and that is
 * no sign that the other side is slow. Between two steps, everything that has arrived is read.
 */
export function afterLoopTime(clock: Clock, delayMs: number, callback: () => void): () => void {
  let left = Math.ceil(delayMs / STEP_MS);
  const step = (): void => {
    left -= 1;
    if (left > 0) cancel = clock.after(STEP_MS, step);
    else callback();
  };
  let cancel = clock.after(Math.min(STEP_MS, delayMs), step);
  return () => cancel();
}
