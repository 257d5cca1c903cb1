import { setTimeout as wait } from "node:timers/promises";

/** Pause after a run, as a multiple of its duration: runs take at most a tenth of the time. */
const PAUSE = 9;
const MAX_PAUSE_MS = 1_000;

/**
 * Returns a function that calls `run` once for all its callers during the run before and the pause after it. So requests
 * that come together cost one run, and none gets the result of a run that began before it.
 */
export function shareRuns<T>(run: () => Promise<T>): () => Promise<T> {
  /** Resolves when the next run may begin. */
  let free: Promise<unknown> = Promise.resolve();
  /** The run that has not begun yet. */
  let next: Promise<T> | undefined;
  const begin = async (): Promise<T> => {
    await free;
    next = undefined;
    const sinceMs = performance.now();
    const running = run();
    const pause = (): Promise<void> =>
      wait(Math.min((performance.now() - sinceMs) * PAUSE, MAX_PAUSE_MS), undefined, { ref: false });
    free = running.then(pause, pause);
    return running;
  };
  return () => (next ??= begin());
}
