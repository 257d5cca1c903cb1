import { FairQueue, type Waiter } from "../core/fair-queue.ts";

/** The parts of answers that have arrived may keep the event loop for so long before it looks at what else there is. */
const TURN_MS = 5;
/** At most so many are done in a turn. */
const MAX_PER_TURN = 128;

interface Part extends Waiter {
  readonly work: () => void;
  readonly sinceMs: number;
}

/**
 * Gives the event loop back between parts of answers. When a process has more to do than it can, parts of all of its streams
 * have arrived at the end of each turn, and to work through them may take tenths of a second, for which callers that come
 * meanwhile would wait, if only to be refused. So what does not fit into a turn is done in the next ones. Keys take turns, each
 * with its oldest part: whoever has few streams does not wait for those of a key that has hundreds.
 */
export class StreamTurns {
  readonly #waiting = new FairQueue<Part>();
  readonly #nowMs: () => number;
  /** How many calls of `#next` are to come. Each does one part or none, and between two the first one's work is finished. */
  #armed = 0;
  /** When the first part of this turn was looked at. */
  #turnBeganMs: number | undefined;
  #longestMs = 0;

  constructor(nowMs = (): number => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** Calls `work` at once when there is time for it in this turn of the event loop, and otherwise when it is the key's turn. */
  take(key: string, work: () => void): void {
    const nowMs = this.#nowMs();
    if (this.#waiting.size === 0 && this.#hasTime(nowMs)) return work();
    this.#waiting.add({ key, work, sinceMs: nowMs });
    this.#arm();
  }

  /** How long anybody had to wait since this was last asked, those who still wait included. */
  takeLongestWaitMs(): number {
    let longestMs = this.#longestMs;
    for (const { sinceMs } of this.#waiting.oldest()) longestMs = Math.max(longestMs, this.#nowMs() - sinceMs);
    this.#longestMs = 0;
    return longestMs;
  }

  #hasTime(nowMs: number): boolean {
    if (this.#turnBeganMs !== undefined) return nowMs - this.#turnBeganMs < TURN_MS;
    this.#turnBeganMs = nowMs;
    setImmediate(this.#endTurn);
    return true;
  }

  readonly #endTurn = (): void => {
    this.#turnBeganMs = undefined;
  };

  #arm(): void {
    if (this.#armed >= Math.min(this.#waiting.size, MAX_PER_TURN)) return;
    this.#armed += 1;
    setImmediate(this.#next);
  }

  readonly #next = (): void => {
    this.#armed -= 1;
    const nowMs = this.#nowMs();
    if (!this.#hasTime(nowMs)) return this.#arm();
    const { work, sinceMs } = this.#waiting.next()!;
    this.#longestMs = Math.max(this.#longestMs, nowMs - sinceMs);
    this.#arm();
    work();
  };
}
