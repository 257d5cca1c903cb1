import { FairQueue, type Waiter } from "./fair-queue.ts";

interface Turn extends Waiter {
  readonly begin: () => void;
}

/** Runs one piece of work at a time, for the keys in turn. */
export class Turns {
  readonly #waiting = new FairQueue<Turn>();
  #isTaken = false;

  /** Runs the work in a turn of the key. When the signal aborts before it has begun, rejects with the signal's reason. */
  async run<T>(key: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    await this.#begin(key, signal);
    try {
      return await work();
    } finally {
      const next = this.#waiting.next();
      if (next === undefined) this.#isTaken = false;
      else next.begin();
    }
  }

  #begin(key: string, signal: AbortSignal): Promise<void> | undefined {
    signal.throwIfAborted();
    if (!this.#isTaken) {
      this.#isTaken = true;
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
