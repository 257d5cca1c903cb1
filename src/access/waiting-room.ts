import type { Failure } from "../core/failure.ts";
import { FairQueue, type Waiter } from "../scheduling/fair-queue.ts";

interface Waiting extends Waiter {
  readonly begin: () => void;
  readonly refuse: () => void;
}

/** Limits of those who wait. */
export interface Places {
  readonly perKey: number;
  readonly all: number;
}

/**
 * Where requests wait for their turn, keys (such as networks) one after another. Anybody can send any number of them, so a key
 * has a limited number of places; when all places are taken, the key with the most gives up its newest for one that would
 * have fewer. So each key has a place while fewer keys wait than there are places.
 */
export class WaitingRoom {
  readonly #waiting = new FairQueue<Waiting>();
  readonly #places: Places;
  readonly #refusal: () => Failure;

  /** `refusal` makes the failure of those who get or keep no place. */
  constructor(places: Places, refusal: () => Failure) {
    this.#places = places;
    this.#refusal = refusal;
  }

  /** Throws the refusal when `enter` would. */
  requireRoom(key: string): void {
    const own = this.#waiting.sizeOf(key);
    const isFull = this.#waiting.size >= this.#places.all;
    if (own >= this.#places.perKey || (isFull && this.#waiting.most <= own + 1)) throw this.#refusal();
  }

  /** Resolves when it is this one's turn. Throws the refusal without a place, and rejects with it when the place is lost. */
  enter(key: string): Promise<void> {
    this.requireRoom(key);
    if (this.#waiting.size >= this.#places.all) this.#waiting.takeNewestOfMost()?.refuse();
    return new Promise((resolve, reject) => {
      this.#waiting.add({ key, begin: resolve, refuse: () => reject(this.#refusal()) });
    });
  }

  /** Begins the turn of the next one. False when the queue is empty. */
  callNext(): boolean {
    const next = this.#waiting.next();
    next?.begin();
    return next !== undefined;
  }
}
