/** The only source of time. Tests and simulations hand in their own. */
export interface Clock {
  /** Wall time in Unix milliseconds: for what is shown or stored, never for measuring. */
  now(): number;
  /** Milliseconds that only ever grow, from an arbitrary beginning: for limits and durations. */
  monotonic(): number;
  /** Calls back once after this many milliseconds, unless the returned function is called before. */
  after(delayMs: number, callback: () => void): () => void;
}

/** Resolves after this many milliseconds, or as soon as the signal aborts. Leaves no timer and no listener behind. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted === true) return Promise.resolve();
  return new Promise((resolve) => {
    const end = (): void => {
      cancel();
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const cancel = clock.after(delayMs, end);
    signal?.addEventListener("abort", end, { once: true });
  });
}

/** The machine's time. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(delayMs, callback) {
    const timer = setTimeout(callback, delayMs);
    return () => clearTimeout(timer);
  },
};

/** The calendar month of a moment, in UTC: `2026-11`. Budgets are for one of these. */
export function monthOf(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 7);
}
