/** So much of an answer is read before it waits for its turn: some tenths of a millisecond of work. */
export const TURN_BYTES = 256 * 1024;

interface Waiting {
  readonly since: number;
  readonly resume: () => void;
}

/**
 * Lets large answers be read one after another. Many that arrive at once would keep the event loop for as long as
 * reading all of them takes, and half of each would be held in memory. In each turn of the loop the oldest one that
 * waits goes on; one whose provider is slow never waits for long, and nobody waits for it.
 */
export class LargeBodyScheduler {
  readonly #waiting: Waiting[] = [];

  /** Calls `resume` when it is this answer's turn. `since` is greater for younger ones. */
  wait(since: number, resume: () => void): void {
    if (this.#waiting.length === 0) setImmediate(this.#next);
    const younger = this.#waiting.findIndex((other) => other.since > since);
    this.#waiting.splice(younger < 0 ? this.#waiting.length : younger, 0, { since, resume });
  }

  readonly #next = (): void => {
    const oldest = this.#waiting.shift();
    if (this.#waiting.length > 0) setImmediate(this.#next);
    oldest?.resume();
  };
}
