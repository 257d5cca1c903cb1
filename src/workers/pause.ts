/** A worker that has lived so long has proved itself. */
const STEADY_MS = 60_000;
const FIRST_MS = 200;
const MAX_MS = 30_000;

/** How long a worker's successor waits: not at all, and longer each time when one after the other dies young. */
export class GrowingPause {
  #youngDeaths = 0;

  /** After a life of so many milliseconds. */
  next(livedMs: number): number {
    if (livedMs >= STEADY_MS) this.#youngDeaths = 0;
    const earlier = this.#youngDeaths++;
    return earlier === 0 ? 0 : Math.min(FIRST_MS * 2 ** (earlier - 1), MAX_MS);
  }
}
