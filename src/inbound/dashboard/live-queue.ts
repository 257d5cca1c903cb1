import { BoundedMap } from "../../core/bounded-map.ts";
import type { Clock } from "../../core/clock.ts";
import type { EndedRequest } from "./request-feed.ts";

/** How many requests wait to be sent at most: a slow reader gets the latest. */
const MAX_WAITING = 200;
/** How many are sent together. */
const MAX_BATCH = 100;
/** How many are known to have been seen: more than are ever looked at again. */
const MAX_KNOWN = 2_000;

/** The requests that one who watches has still to be sent, each once. */
export class LiveQueue {
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  readonly #known = new BoundedMap<string, true>(MAX_KNOWN);
  readonly #waiting: EndedRequest[] = [];
  #skipped = 0;
  #added = (): void => undefined;

  /** `signal` ends every wait. */
  constructor(clock: Clock, signal: AbortSignal) {
    this.#clock = clock;
    this.#signal = signal;
  }

  /** Whether this is the first that is heard of a request; it is not the second time. */
  isNew(completionId: string): boolean {
    if (this.#known.has(completionId)) return false;
    this.#known.set(completionId, true);
    return true;
  }

  /** Takes a request to be sent. When too many wait, the one that has waited longest is left out. */
  add(ended: EndedRequest): void {
    this.isNew(ended.entry.completionId);
    this.#waiting.push(ended);
    if (this.#waiting.length > MAX_WAITING) {
      this.#waiting.shift();
      this.skip(1);
    }
    this.#added();
  }

  /** Takes note of some that are left out. */
  skip(count: number): void {
    this.#skipped += count;
  }

  /** What is to be sent next, and how many have been left out since the last time. */
  take(): { readonly requests: readonly EndedRequest[]; readonly skipped: number } {
    const skipped = this.#skipped;
    this.#skipped = 0;
    return { requests: this.#waiting.splice(0, MAX_BATCH), skipped };
  }

  /** Resolves after this time, when the signal aborts, or when there is something to send if that is waited for. */
  async wait({ forMs, until }: { readonly forMs: number; readonly until: "some" | "the end" }): Promise<void> {
    if (this.#signal.aborted || (until === "some" && this.#waiting.length > 0)) return;
    await new Promise<void>((resolve) => {
      const end = (): void => {
        cancelTimer();
        this.#signal.removeEventListener("abort", end);
        this.#added = () => undefined;
        resolve();
      };
      const cancelTimer = this.#clock.after(forMs, end);
      this.#signal.addEventListener("abort", end);
      if (until === "some") this.#added = end;
    });
  }
}
