import { Failure } from "../core/failure.ts";
import { WaitingRoom } from "./waiting-room.ts";

/** Strangers whose requests use the database at once: all other work has its queue in common with them. */
const MAX_RUNNING = 4;
const PLACES = { perKey: 500, all: 2_000 } as const;

/**
 * Lets requests of people who have not signed in use the database a few at a time, networks and known browsers in turn: anybody
 * can send any number of them, and each one takes several queries and writes.
 */
export class Turns {
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
   * Runs `work` when it is the turn of `key`, a network or a known browser. Throws `overloaded` when 500 requests of it wait, or, of
   * 2,000 in all, none has more. The command line, which has no network, does not wait.
   */
  async take<T>(key: string | undefined, work: () => Promise<T>): Promise<T> {
    if (key === undefined) return work();
    if (this.#running < MAX_RUNNING) this.#running += 1;
    else await this.#waiting.enter(key);
    try {
      return await work();
    } finally {
      // The place passes directly to the next one, so that a newcomer cannot take it in between.
      if (!this.#waiting.callNext()) this.#running -= 1;
    }
  }
}
