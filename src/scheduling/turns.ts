import { FairQueue, type Waiter } from "./fair-queue.ts";

interface Turn extends Waiter {
  readonly begin: () => void;
}

/** Runs at most a number of pieces of work at a time, for the keys in turn. */
export class Turns {
  readonly #waiting = new FairQueue<Turn>();
  #free: number;

  /** `size`: pieces of work at a time, at least 1. */
  constructor(size: number) {
    this.#free = size;
  }

  /** Runs the work in a turn of the key. When the signal aborts before it has begun, rejects with the signal's reason. */
  async run<T>(key: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    await this.#begin(key, signal);
    try {
      return await work();
    } finally {
      const next = this.#waiting.next();
      if (next === undefined) this.#free += 1;
      else next.begin();
    }
  }

  #begin(key: string, signal: AbortSignal): Promise<void> | undefined {
    signal.throwIfAborted();
    if (this.#free > 0) {
      this.#free -= 1;
      return undefined;
    }
    return new Promise((resolve, reject) => {
      const turn: Turn = {
        key,
        begin() {
          signal.removeEventListener("abort", leave);
          resolve();
        },
      };
      const leave = (): void => {
        this.#waiting.remove(turn);
        reject(signal.reason as Error);
      };
      signal.addEventListener("abort", leave, { once: true });
      this.#waiting.add(turn);
    });
  }
}
