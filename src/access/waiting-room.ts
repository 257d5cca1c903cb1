import type { Failure } from "../core/failure.ts";
import { FairQueue, type Waiter } from "../scheduling/fair-queue.ts";

interface Waiting extends Waiter {
  readonly begin: () => void;
  readonly refuse: () => void;
}

/** Limits of waiting requests. */
export interface Places {
  readonly perKey: number;
  readonly all: number;
}

/**
 * Queue of requests that gives keys (such as networks) their turn one after another. Clients can send any number of
 * requests, so a key has a limited number of places; when all places are taken, the key with the most gives up its newest
 * for one that would have fewer. So each key has a place while fewer keys wait than there are places.
 */
export class WaitingRoom {
  readonly #waiting = new FairQueue<Waiting>();
  readonly #places: Places;
  readonly #refusal: () => Failure;

  /** `refusal` makes the failure of a request that gets no place or loses it. */
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

  /**
   * Resolves when it is this request's turn. Throws the refusal without a place, and rejects with it when the place is lost.
   */
  enter(key: string): Promise<void> {
    this.requireRoom(key);
    if (this.#waiting.size >= this.#places.all) this.#waiting.takeNewestOfMost()?.refuse();
    return new Promise((resolve, reject) => {
      this.#waiting.add({ key, begin: resolve, refuse: () => reject(this.#refusal()) });
    });
  }

  /** Begins the turn of the next request. False when the queue is empty. */
  callNext(): boolean {
    const next = this.#waiting.next();
    next?.begin();
    return next !== undefined;
  }
}
