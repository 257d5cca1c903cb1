import { FairQueue, type Waiter } from "./fair-queue.ts";

/** The parts of answers that have arrived may keep the event loop for so long before it looks at what else there is. */
const TURN_MS = 5;
/** So many, or parts of so many bytes in all, are done one right after the other before anybody looks at the time. */
const GROUP = 32;
const GROUP_BYTES = 16 * 1024;
/** At most so many groups are done in a turn. */
const MAX_GROUPS = 8;

/** Lets a part be read, and answers how many bytes that is. */
type Work = () => number;

interface Part extends Waiter {
  readonly work: Work;
  readonly sinceMs: number;
}

/**
 * Decides when the parts of answers that have arrived are looked at: together, when all sockets have been read that there is
 * something on. What all of them go through is then in the processor's caches for all but the first, which makes a request
 * a tenth cheaper (docs/performance/what-remains.md).
 *
 * Gives the event loop back between groups of parts. When a process has more to do than it can, parts of all of its streams
 * have arrived at the end of each turn, and to work through them may take tenths of a second, for which callers that come
 * meanwhile would wait, if only to be refused. So what does not fit into a turn is done in the next ones. Keys take turns, each
 * with its oldest part: whoever has few streams does not wait for those of a key that has hundreds.
 */
export class ReadScheduler {
  readonly #waiting = new FairQueue<Part>();
  readonly #nowMs: () => number;
  /** How many calls of `#next` are to come. Each does one group or none, and between two the first one's work is finished. */
  #armed = 0;
  /** When the first group of this turn was begun. */
  #turnBeganMs: number | undefined;
  #isEndArmed = false;
  #longestMs = 0;

  constructor(nowMs = (): number => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** Calls `work` at the end of this turn of the event loop when there is time for it, and otherwise when it is the key's turn. */
  take(key: string, work: Work): void {
    this.#waiting.add({ key, work, sinceMs: this.#nowMs() });
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
    this.#turnBeganMs ??= nowMs;
    return nowMs - this.#turnBeganMs < TURN_MS;
  }

  /** Before anything that is done in the next turn. When nothing is to be done, the turn is over already: waking up costs. */
  #armEnd(): void {
    if (this.#armed === 0 && this.#waiting.size === 0) this.#turnBeganMs = undefined;
    else if (!this.#isEndArmed) {
      this.#isEndArmed = true;
      setImmediate(this.#endTurn);
    }
  }

  readonly #endTurn = (): void => {
    this.#isEndArmed = false;
    this.#turnBeganMs = undefined;
  };

  #arm(): void {
    if (this.#armed >= Math.min(this.#waiting.size, MAX_GROUPS)) return;
    this.#armed += 1;
    setImmediate(this.#next);
  }

  readonly #next = (): void => {
    this.#armed -= 1;
    const nowMs = this.#nowMs();
    if (this.#hasTime(nowMs)) this.#doGroup(nowMs);
    this.#armEnd();
    this.#arm();
  };

  #doGroup(nowMs: number): void {
    let bytes = 0;
    for (let count = 0; count < GROUP && bytes < GROUP_BYTES; count++) {
      const part = this.#waiting.next();
      if (part === undefined) return;
      this.#longestMs = Math.max(this.#longestMs, nowMs - part.sinceMs);
      bytes += part.work();
    }
  }
}

let end: Promise<void> | undefined;

/**
 * Resolves at the end of this turn of the event loop, at once for all who wait for it in this turn. Requests that have arrived
 * together then take each of their steps one after another, and find its code in the processor's caches: a request alone
 * passes through more code than these hold, and a tenth of its time is spent on waiting for it
 * (docs/performance/what-remains.md).
 */
export function afterThisLoopTurn(): Promise<void> {
  return (end ??= new Promise((resolve) => {
    setImmediate(() => {
      end = undefined;
      resolve();
    });
  }));
}

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
