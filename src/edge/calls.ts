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
  /** The answer is out; ends the deadline's timer. */
  close(): void;
}

/** The longest deadline that is kept by a timer; a later one is bounded by the models' own time limits anyway. */
const MAX_DEADLINE_MS = 24 * 60 * 60 * 1000;

/** A caller who leaves so shortly before its deadline has kept it on its own side: gRPC's clients do, a network's delay early. */
const OWN_DEADLINE_MS = 50;

/** What a call ends with when its caller's deadline has passed. */
export function deadlinePassed(): Failure {
  return new Failure("deadline_exceeded", "The caller's deadline passed before the completion was done.");
}

/** The calls under way in this process, of all entrances: what a drain waits for. */
export class Calls {
  readonly #clock: Clock;
  readonly #open = new Set<AbortController>();
  #opened = 0;
  /** Who waits for which calls to end. */
  readonly #waiting = new Set<{ readonly left: Set<AbortController>; readonly resolve: () => void }>();

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
    const controller = new AbortController();
    this.#open.add(controller);
    this.#opened += 1;
    const expire = (): void => controller.abort(deadlinePassed());
    const expiresMs = deadlineMs === undefined ? undefined : this.#clock.monotonic() + deadlineMs;
    const cancelTimer =
      deadlineMs === undefined
        ? undefined
        : this.#clock.after(Math.min(Math.max(deadlineMs, 0), MAX_DEADLINE_MS), expire);
    return {
      signal: controller.signal,
      expiresMs,
      leave: () => {
        if (!this.#open.has(controller)) return;
        if (this.#clock.monotonic() >= (expiresMs ?? Infinity) - OWN_DEADLINE_MS) expire();
        else controller.abort(new Failure("cancelled", "The caller left."));
      },
      end: (reason) => {
        if (this.#open.has(controller)) controller.abort(reason);
      },
      close: () => {
        cancelTimer?.();
        this.#open.delete(controller);
        for (const waiter of this.#waiting) {
          if (!waiter.left.delete(controller) || waiter.left.size > 0) continue;
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
    for (const controller of this.#open) controller.abort(new Failure("overloaded", "The gateway is shutting down."));
  }
}
