import type { Clock } from "../../../src/core/clock.ts";

/** Clock of one process: that of its world, but its timers end with it. */
export class ProcessClock implements Clock {
  readonly #world: Clock;
  readonly #set = new Set<() => void>();
  #isDead = false;

  constructor(world: Clock) {
    this.#world = world;
  }

  now(): number {
    return this.#world.now();
  }

  monotonic(): number {
    return this.#world.monotonic();
  }

  after(delayMs: number, callback: () => void): () => void {
    if (this.#isDead) return () => undefined;
    const callOff = this.#world.after(delayMs, () => {
      this.#set.delete(cancel);
      callback();
    });
    const cancel = (): void => {
      this.#set.delete(cancel);
      callOff();
    };
    this.#set.add(cancel);
    return cancel;
  }

  /** Number of pending timers. */
  get pending(): number {
    return this.#set.size;
  }

  get isDead(): boolean {
    return this.#isDead;
  }

  /** Cancels all timers of the killed process. */
  kill(): void {
    this.#isDead = true;
    for (const cancel of this.#set) cancel();
  }

  /** Forwards a result to this process; never settles once the process is gone. */
  async hear<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer;
    } finally {
      if (this.#isDead) await new Promise<never>(() => undefined);
    }
  }
}
