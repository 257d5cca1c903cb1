import { FairQueue, type Waiter } from "./fair-queue.ts";

interface Turn extends Waiter {
  readonly begin: () => void;
}

/** Runs at most a number of pieces of work at a time, for the keys in turn. */
export class Turns {
  readonly #waiting = new FairQueue<Turn>();
  /** Pieces of work of each key that run. */
  readonly #running = new Map<string, number>();
  readonly #ofKey: number;
  #free: number;

  /** `size`: pieces of work at a time, at least 1. `ofKey`: those of one key. Default: all. */
  constructor(size: number, { ofKey = size }: { readonly ofKey?: number } = {}) {
    this.#free = size;
    this.#ofKey = ofKey;
  }

  /** Runs the work in a turn of the key. When the signal aborts before it has begun, rejects with the signal's reason. */
  async run<T>(key: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    await this.#begin(key, signal);
    try {
      return await work();
    } finally {
      this.#end(key);
    }
  }

  #mayBegin(key: string): boolean {
    return this.#free > 0 && (this.#running.get(key) ?? 0) < this.#ofKey;
  }

  #take(key: string): void {
    this.#free -= 1;
    this.#running.set(key, (this.#running.get(key) ?? 0) + 1);
  }

  /** Gives a turn back, and begins the work that may begin for it: at most one. */
  #end(key: string): void {
    const left = this.#running.get(key)! - 1;
    if (left === 0) this.#running.delete(key);
    else this.#running.set(key, left);
    this.#free += 1;
    const next = this.#waiting.next((turn) => this.#mayBegin(turn.key));
    if (next === undefined) return;
    this.#take(next.key);
    next.begin();
  }

  #begin(key: string, signal: AbortSignal): Promise<void> | undefined {
    signal.throwIfAborted();
    if (this.#mayBegin(key)) {
      this.#take(key);
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
