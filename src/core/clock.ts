/** The only source of time. Tests and simulations pass their own. */
export interface Clock {
  /** Wall-clock time in Unix milliseconds: for display and storage, never for durations. */
  now(): number;
  /** Monotonic time in milliseconds from an arbitrary origin: for limits and durations. */
  monotonic(): number;
  /** Calls `callback` once after `delayMs`. The returned function cancels it. */
  after(delayMs: number, callback: () => void): () => void;
}

/** Resolves after `delayMs`, or as soon as the signal aborts. Leaves no timer and no listener behind. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return waitAtMost(undefined, { clock, limitMs: delayMs, signal });
}

/**
 * Resolves when the work has settled, after the limit, or as soon as the signal aborts. Leaves no timer and no listener behind.
 * Never rejects.
 */
export function waitAtMost(
  work: Promise<unknown> | undefined,
  {
    clock,
    limitMs,
    signal,
  }: { readonly clock: Clock; readonly limitMs: number; readonly signal: AbortSignal | undefined },
): Promise<void> {
  if (signal?.aborted === true) return Promise.resolve();
  return new Promise((resolve) => {
    const end = (): void => {
      cancel();
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const cancel = clock.after(limitMs, end);
    signal?.addEventListener("abort", end, { once: true });
    work?.then(end, end);
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

/** The calendar month of a time in UTC, such as `2026-11`: the period of most budgets. */
export function monthOf(atMs: number): string {
  return periodAt(atMs, "month");
}

/** Period of a budget: a calendar day or month in UTC, or a whole session. */
export type BudgetPeriod = "day" | "month" | "session";

/** Name of the period at a time: `2026-11-28`, `2026-11` or `session`. */
export function periodAt(atMs: number, period: BudgetPeriod): string {
  if (period === "session") return period;
  return new Date(atMs).toISOString().slice(0, period === "day" ? 10 : 7);
}

/** Start of the next day or month in UTC. */
export function endOfPeriod(atMs: number, period: "day" | "month"): number {
  const now = new Date(atMs);
  const [year, month] = [now.getUTCFullYear(), now.getUTCMonth()];
  return period === "day" ? Date.UTC(year, month, now.getUTCDate() + 1) : Date.UTC(year, month + 1, 1);
}
