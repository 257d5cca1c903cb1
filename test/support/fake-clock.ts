import type { Clock } from "../../src/core/clock.ts";
import { TimerQueue } from "./timer-queue.ts";

/**
 * A clock that is moved by hand. Timers go off in the order of their time, and those of the same time in the order they
 * were set, so that a test runs the same way every time.
 */
export class FakeClock implements Clock {
  readonly #beganUnixMs: number;
  // Not zero, so that nobody gets away with taking `monotonic` for an age.
  #monotonicMs = 1_000_000;
  readonly #timers = new TimerQueue();

  /** `unixMs` is the wall time at the beginning. */
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

  /** How many timers are set. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Lets this much time pass at once; timers that come due go off, promises are not waited for. */
  advance(ms: number): void {
    const untilMs = this.#monotonicMs + ms;
    while (this.#timers.dueMs <= untilMs) this.step();
    this.#monotonicMs = untilMs;
  }

  /** Lets time pass as it would in the world: before each timer and at the end, everything that can happen has. */
  async pass(ms: number): Promise<void> {
    const untilMs = this.#monotonicMs + ms;
    await settle();
    while (this.#timers.dueMs <= untilMs) {
      this.step();
      await settle();
    }
    this.#monotonicMs = untilMs;
  }

  /** Lets time pass until `work` is done. Throws when it waits for something that no timer will bring. */
  async drive<T>(work: Promise<T>): Promise<T> {
    const done = work.then(
      () => true,
      () => true,
    );
    while (!(await Promise.race([done, settle().then(() => false)])))
      if (!this.step()) throw new Error("the work waits for something that never comes");
    return work;
  }

  /** Lets time pass until the next timer, which goes off; promises are not waited for. False when none is set. */
  step(): boolean {
    const timer = this.#timers.take();
    if (timer === undefined) return false;
    this.#monotonicMs = Math.max(this.#monotonicMs, timer.dueMs);
    timer.callback();
    return true;
  }
}

/** Resolves when every promise that can go on has gone on. */
export function settle(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}
