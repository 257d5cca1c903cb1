import type { Clock } from "../../src/core/clock.ts";
import { TimerQueue } from "./timer-queue.ts";

/**
 * A clock that tests advance. Timers run in order of their due time, then in the order they were set, so that tests are
 * deterministic.
 */
export class FakeClock implements Clock {
  readonly #beganUnixMs: number;
  // Not zero, so that code that confuses `monotonic` with an age fails.
  #monotonicMs = 1_000_000;
  readonly #timers = new TimerQueue();

  /** `unixMs` is the initial wall time. */
  constructor(unixMs: number = Date.UTC(2026, 0, 1)) {
    this.#beganUnixMs = unixMs - this.#monotonicMs;
  }

  now(): number {
    return this.#beganUnixMs + this.#monotonicMs;
  }

  monotonic(): number {
    return this.#monotonicMs;
  }

  after(delayMs: number, callback: () => void): () => void {
    return this.#timers.add(this.#monotonicMs + Math.max(delayMs, 0), callback);
  }

  /** Number of pending timers. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Advances the time at once and runs due timers, without waiting for promises. */
  advance(ms: number): void {
    const untilMs = this.#monotonicMs + ms;
    while (this.#timers.dueMs <= untilMs) this.step();
    this.#monotonicMs = untilMs;
  }

  /** Advances the time as in reality: waits for all promises before each timer and at the end. */
  async pass(ms: number): Promise<void> {
    const untilMs = this.#monotonicMs + ms;
    await settle();
    while (this.#timers.dueMs <= untilMs) {
      this.step();
      await settle();
    }
    this.#monotonicMs = untilMs;
  }

  /** Advances the time until `work` settles. Throws if no timer is pending before that. */
  async drive<T>(work: Promise<T>): Promise<T> {
    const done = work.then(
      () => true,
      () => true,
    );
    while (!(await Promise.race([done, settle().then(() => false)])))
      if (!this.step()) throw new Error("the work waits, but no timer is pending");
    return work;
  }

  /**
   * Advances the time to the next timer and runs it, without waiting for promises. Returns false if none is pending.
   */
  step(): boolean {
    const timer = this.#timers.take();
    if (timer === undefined) return false;
    this.#monotonicMs = Math.max(this.#monotonicMs, timer.dueMs);
    timer.callback();
    return true;
  }
}

/** Resolves when no promise can make progress. */
export function settle(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}
