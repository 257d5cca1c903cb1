/** The only source of time. Tests and simulations pass their own. */
export interface Clock {
  /** Wall-clock time in Unix milliseconds: for display and storage, never for durations. */
  now(): number;
  /** Monotonic time in milliseconds from an arbitrary origin: for limits and durations. */
  monotonic(): number;
  /** Calls back once after this many milliseconds. The returned function cancels it. */
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

/** The system clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(delayMs, callback) {
    const timer = setTimeout(callback, delayMs);
    return () => clearTimeout(timer);
  },
};

/** The calendar month of a time in UTC, such as `2026-11`: the period of a budget. */
export function monthOf(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 7);
}
