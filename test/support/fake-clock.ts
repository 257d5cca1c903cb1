import type { Clock } from "../../src/core/clock.ts";

interface Timer {
  readonly dueMs: number;
  readonly callback: () => void;
}

/**
 * A clock that is moved by hand. Timers go off in the order of their time, and those of the same time in the order they
 * were set, so that a test runs the same way every time.
 */
export class FakeClock implements Clock {
  readonly #beganUnixMs: number;
  // Not zero, so that nobody gets away with taking `monotonic` for an age.
  #monotonicMs = 1_000_000;
  readonly #timers = new Set<Timer>();

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
    const timer: Timer = { dueMs: this.#monotonicMs + Math.max(delayMs, 0), callback };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  /** How many timers are set. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Lets this much time pass at once; timers that come due go off, promises are not waited for. */
  advance(ms: number): void {
    const untilMs = this.#monotonicMs + ms;
    for (let timer = this.#next(); timer !== undefined && timer.dueMs <= untilMs; timer = this.#next())
      this.#fire(timer);
    this.#monotonicMs = untilMs;
  }

  /** Lets time pass as it would in the world: before each timer and at the end, everything that can happen has. */
  async pass(ms: number): Promise<void> {
    const untilMs = this.#monotonicMs + ms;
    await settle();
    for (let timer = this.#next(); timer !== undefined && timer.dueMs <= untilMs; timer = this.#next()) {
      this.#fire(timer);
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
    while (!(await Promise.race([done, settle().then(() => false)]))) {
      const timer = this.#next();
      if (timer === undefined) throw new Error("the work waits for something that never comes");
      this.#fire(timer);
    }
    return work;
  }

  #next(): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of this.#timers) if (next === undefined || timer.dueMs < next.dueMs) next = timer;
    return next;
  }

  #fire(timer: Timer): void {
    this.#timers.delete(timer);
    this.#monotonicMs = Math.max(this.#monotonicMs, timer.dueMs);
    timer.callback();
  }
}

/** Resolves when every promise that can go on has gone on. */
export function settle(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}
