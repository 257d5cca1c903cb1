import { Failure } from "../core/failure.ts";
import { FairQueue, type Waiter } from "../scheduling/fair-queue.ts";

/** Strangers whose requests use the database at once: all other work has its queue in common with them. */
const MAX_RUNNING = 4;
/** Limits of those that wait. */
const MAX_WAITING = { network: 500, all: 2_000 } as const;

interface Turn extends Waiter {
  readonly begin: () => void;
}

/**
 * Lets requests of people who have not signed in use the database a few at a time, networks in turn: anybody can send any number
 * of them, and each one takes several queries and writes.
 */
export class Turns {
  #running = 0;
  readonly #waiting = new FairQueue<Turn>();

  /**
   * Runs `work` when it is the network's turn. Throws `overloaded` when 500 requests of it wait, or 2,000 of all. The command line, which
   * has no network, does not wait.
   */
  async take<T>(network: string | undefined, work: () => Promise<T>): Promise<T> {
    if (network === undefined) return work();
    if (this.#running < MAX_RUNNING) this.#running += 1;
    else await this.#wait(network);
    try {
      return await work();
    } finally {
      // The place passes directly to the next one, so that a newcomer cannot take it in between.
      const next = this.#waiting.next();
      if (next === undefined) this.#running -= 1;
      else next.begin();
    }
  }

  #wait(key: string): Promise<void> {
    if (this.#waiting.size >= MAX_WAITING.all || this.#waiting.sizeOf(key) >= MAX_WAITING.network)
      throw new Failure("overloaded", "Too many people are signing in. Try again shortly.", { retryAfterMs: 2_000 });
    return new Promise((resolve) => this.#waiting.add({ key, begin: resolve }));
  }
}
