/** The only source of time. Tests and simulations hand in their own. */
export interface Clock {
  /** Wall time in Unix milliseconds: for what is shown or stored, never for measuring. */
  now(): number;
  /** Milliseconds that only ever grow, from an arbitrary beginning: for limits and durations. */
  monotonic(): number;
  /** Calls back once after this many milliseconds, unless the returned function is called before. */
  after(delayMs: number, callback: () => void): () => void;
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
