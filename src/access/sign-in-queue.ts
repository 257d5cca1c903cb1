import { Failure } from "../core/failure.ts";
import { WaitingRoom } from "./waiting-room.ts";

/**
 * Requests of callers who have not signed in that use the database at once: all other work shares the database's queue with
 * them.
 */
const MAX_RUNNING = 4;
const PLACES = { perKey: 500, all: 2_000 } as const;

/**
 * Lets requests of people who have not signed in use the database a few at a time, networks and known browsers in turn: any
 * client can send any number of them, and each takes several queries and writes.
 */
export class SignInQueue {
  #running = 0;
  readonly #waiting = new WaitingRoom(
    PLACES,
    () =>
      new Failure("overloaded", "Too many people are signing in. Try again shortly.", {
        retryAfterMs: 2_000,
        unavailable: "busy",
      }),
  );

  /**
   * Runs `work` when it is the turn of `key`, a network or a known browser. Throws `overloaded` when 500 requests of this
   * key wait, or when 2,000 wait in all and no other key has more. The command line, which has no network, does not wait.
   */
  async take<T>(key: string | undefined, work: () => Promise<T>): Promise<T> {
    if (key === undefined) return work();
    if (this.#running < MAX_RUNNING) this.#running += 1;
    else await this.#waiting.enter(key);
    try {
      return await work();
    } finally {
      // The slot passes directly to the next request, so that a newcomer cannot take it in between.
      if (!this.#waiting.callNext()) this.#running -= 1;
    }
  }
}
