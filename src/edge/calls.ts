import type { Clock } from "../core/clock.ts";
import { Failure } from "../core/failure.ts";

/** One call under way, from its arrival to the last byte of its answer. */
export interface OpenCall {
  /** Aborts when the caller leaves, its deadline passes or the gateway stops; the reason is a Failure. */
  readonly signal: AbortSignal;
  /** When the caller's deadline passes, by the clock's `monotonic`; undefined without one. */
  readonly expiresMs: number | undefined;
  /** The caller is gone. Without effect once the call is closed. */
  leave(): void;
  /** Ends it for another reason, which its caller is told. Without effect once the call is closed. */
  end(reason: Failure): void;
  /** Its answer is complete and being written. The deadline was for the completion, and ends this no more. */
  answering(): Answering;
  /** The answer is out; ends the deadline's timer. */
  close(): void;
}

/** Whose answer is being written. */
export type Answering = Pick<OpenCall, "signal" | "leave">;

/** The longest deadline that is kept by a timer; a later one is bounded by the models' own time limits anyway. */
const MAX_DEADLINE_MS = 24 * 60 * 60 * 1000;

/** A caller who leaves so shortly before its deadline has kept it on its own side: gRPC's clients do, a network's delay early. */
const OWN_DEADLINE_MS = 50;

/** What a call ends with when its caller's deadline has passed. */
export function deadlinePassed(): Failure {
  return new Failure("deadline_exceeded", "The caller's deadline passed before the completion was done.");
}

/** What ends one call: its deadline, or anything else, which ends the writing of its answer too. */
class Underway {
  readonly #completion = new AbortController();
  /** Made when it is asked for: most answers are out at once. */
  #answer: AbortController | undefined;
  #ended: Failure | undefined;

  get signal(): AbortSignal {
    return this.#completion.signal;
  }

  answeringSignal(): AbortSignal {
    this.#answer ??= new AbortController();
    if (this.#ended !== undefined) this.#answer.abort(this.#ended);
    return this.#answer.signal;
  }

  expire(): void {
    this.#completion.abort(deadlinePassed());
  }

  end(reason: Failure): void {
    this.#completion.abort(reason);
    this.#ended ??= reason;
    this.#answer?.abort(reason);
  }
}

/** The calls under way in this process, of all entrances: what a drain waits for. */
export class Calls {
  readonly #clock: Clock;
  readonly #open = new Set<Underway>();
  #opened = 0;
  /** Who waits for which calls to end. */
  readonly #waiting = new Set<{ readonly left: Set<Underway>; readonly resolve: () => void }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** How many calls are under way. */
  get active(): number {
    return this.#open.size;
  }

  /** How many calls there have been, those under way included. */
  get opened(): number {
    return this.#opened;
  }

  /** Opens a call. `deadlineMs` is what is left of the caller's deadline, if it has one. */
  open(deadlineMs: number | undefined): OpenCall {
    const one = new Underway();
    this.#open.add(one);
    this.#opened += 1;
    const expire = (): void => one.expire();
    const expiresMs = deadlineMs === undefined ? undefined : this.#clock.monotonic() + deadlineMs;
    const cancelTimer =
      deadlineMs === undefined
        ? undefined
        : this.#clock.after(Math.min(Math.max(deadlineMs, 0), MAX_DEADLINE_MS), expire);
    const leave = (): void => {
      if (!this.#open.has(one)) return;
      if (this.#clock.monotonic() >= (expiresMs ?? Infinity) - OWN_DEADLINE_MS) expire();
      one.end(new Failure("cancelled", "The caller left."));
    };
    return {
      signal: one.signal,
      expiresMs,
      leave,
      end: (reason) => {
        if (this.#open.has(one)) one.end(reason);
      },
      answering: () => ({ signal: one.answeringSignal(), leave }),
      close: () => {
        cancelTimer?.();
        this.#open.delete(one);
        for (const waiter of this.#waiting) {
          if (!waiter.left.delete(one) || waiter.left.size > 0) continue;
          this.#waiting.delete(waiter);
          waiter.resolve();
        }
      },
    };
  }

  /** Resolves when every call that is under way now has ended, whatever has begun since. */
  async passed(): Promise<void> {
    const left = new Set(this.#open);
    if (left.size > 0) await new Promise<void>((resolve) => this.#waiting.add({ left, resolve }));
  }

  /** Resolves when no call is under way. */
  async idle(): Promise<void> {
    while (this.active > 0) await this.passed();
  }

  /** Ends every call that is still under way: the drain's time is up. */
  abortAll(): void {
    for (const one of this.#open) one.end(new Failure("overloaded", "The gateway is shutting down."));
  }
}
