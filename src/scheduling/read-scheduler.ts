import { FairQueue, type Waiter } from "./fair-queue.ts";

/** Longest time of reading parts of answers in one event loop turn, in milliseconds. */
const TURN_MS = 5;
/** Parts, or bytes of parts, that are read as one group between two looks at the clock. */
const GROUP = 32;
const GROUP_BYTES = 16 * 1024;
/** Groups per event loop turn at most. */
const MAX_GROUPS = 8;

/** Reads a part; returns its bytes. */
type Work = () => number;

interface Part extends Waiter {
  readonly work: Work;
  readonly sinceMs: number;
}

/**
 * Schedules the reading of arrived parts of answers: together at the end of an event loop turn, after all readable sockets. The
 * code is then in the processor's caches for all parts but the first, which makes a request a tenth cheaper
 * (docs/performance/what-remains.md).
 *
 * Yields to the event loop between groups. Under overload parts of all streams have arrived at the end of each turn, and reading
 * them takes tenths of a second, in which new callers would wait even for a refusal. What exceeds a turn is read in the next
 * ones, round robin by key, so that a key with few streams does not wait for one with hundreds.
 */
export class ReadScheduler {
  readonly #waiting = new FairQueue<Part>();
  readonly #nowMs: () => number;
  /** Pending calls of `#next`. Each reads at most one group, and a group's work is finished before the next call. */
  #armed = 0;
  /** Start of the first group of this turn. */
  #turnBeganMs: number | undefined;
  #isEndArmed = false;
  #longestMs = 0;

  constructor(nowMs = (): number => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** Calls `work` at the end of this event loop turn, or in a later turn of the key when time is short. */
  take(key: string, work: Work): void {
    this.#waiting.add({ key, work, sinceMs: this.#nowMs() });
    this.#arm();
  }

  /** Longest wait since the last call, current waiters included. */
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

  /** Runs before other work of the next turn. Not scheduled without work: waking up costs. */
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
 * Resolves at the end of this event loop turn, together for all waiters of the turn. Requests that arrived together then run
 * each step one after another, with its code in the processor's caches: a single request runs through more code than the
 * caches hold, and waits for it a tenth of its time (docs/performance/what-remains.md).
 */
export function afterThisLoopTurn(): Promise<void> {
  return (end ??= new Promise((resolve) => {
    setImmediate(() => {
      end = undefined;
      resolve();
    });
  }));
}

/** Bytes of an answer that are read before it waits for its turn: some tenths of a millisecond of work. */
export const TURN_BYTES = 256 * 1024;

interface Waiting {
  readonly since: number;
  readonly resume: () => void;
}

/**
 * Reads large answers one after another. Read together they would block the event loop, with half of each in memory. In each
 * event loop turn the oldest waiting answer continues; an answer from a slow provider delays no other.
 */
export class LargeBodyScheduler {
  readonly #waiting: Waiting[] = [];

  /** Calls `resume` in the turn of this answer. `since`: its start; larger for younger answers. */
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
