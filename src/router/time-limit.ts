import type { Clock } from "../core/clock.ts";
import { Failure } from "../core/failure.ts";

/** Time in which the caller may still read the batch that was being written when a limit ended. Shorter than `SETTLING_MS`. */
const READ_GRACE_MS = 20_000;

/**
 * A time limit: ends with its parent (a signal or another limit), or with `upstream_timeout`. `signal` aborts at the end; after
 * the parent's end only `settleMs` later, so that the provider can still send its token count.
 */
export class TimeLimit {
  /** Created on first use: an AbortSignal costs more than the rest of the limit. */
  #controller: AbortController | undefined;
  #hasAborted = false;
  readonly #parent: AbortSignal | TimeLimit;
  /** Limit of an attempt in flight; its `#sibling` is the limit of another one. */
  #child: TimeLimit | undefined;
  #sibling: TimeLimit | undefined;
  readonly #clock: Clock;
  readonly #settleMs: number;
  readonly #follow = (): void => this.#end(this.#parent.reason, this.#settleMs);
  #cancelTimer: (() => void) | undefined;
  /** Time at which the limit passes, by the clock's `monotonic`, and the message of its failure. */
  #endsMs = 0;
  #message = "";
  #cancelSettling: (() => void) | undefined;
  #cancelGrace: (() => void) | undefined;
  #isOver = false;
  #settles = false;
  #reason: unknown;
  #reject: ((reason: unknown) => void) | undefined;
  #stopEmitting: (() => void) | undefined;
  #room: Promise<void> | undefined;
  #workEndedMs: number | undefined;

  constructor(parent: AbortSignal | TimeLimit, clock: Clock, settleMs = 0) {
    this.#parent = parent;
    this.#clock = clock;
    this.#settleMs = settleMs;
    if (parent instanceof TimeLimit ? parent.isOver : parent.aborted) this.#follow();
    else if (parent instanceof TimeLimit) parent.#adopt(this);
    else parent.addEventListener("abort", this.#follow, { once: true });
  }

  /** Signal for the provider call: aborts when its result is no longer needed. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#hasAborted) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Whether the limit has ended while the provider call is still being read. */
  get settles(): boolean {
    return this.#settles;
  }

  /** End of a continued provider call by the clock's `monotonic`; now, if it has not ended. */
  get workEndedMs(): number {
    return this.#workEndedMs ?? this.#clock.monotonic();
  }

  /** Why the limit has ended. */
  get reason(): unknown {
    return this.#reason;
  }

  start(limitMs: number, message: string): void {
    this.#endsMs = this.#clock.monotonic() + limitMs;
    this.#message = message;
    this.#cancelTimer = this.#clock.after(limitMs, () => this.#end(new Failure("upstream_timeout", message), 0));
  }

  /**
   * Settles as `work` does, or rejects with the reason when the limit ends first; `work` may continue then. The rejection waits
   * up to READ_GRACE_MS for the batch that is being emitted.
   */
  race<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#isOver) reject(this.#reason);
      this.#reject = reject;
      work.then(
        (result) => (this.#isOver ? this.#workEnded() : resolve(result)),
        (reason: unknown) => (this.#isOver ? this.#workEnded() : reject(reason)),
      );
    });
  }

  /** Settles as `room` does, or resolves when the limit ends. */
  unlessOver(room: Promise<void>): Promise<void> {
    this.#room = room;
    return new Promise((resolve, reject) => {
      this.#stopEmitting = resolve;
      room.then(resolve, (reason: unknown) => (this.#isOver ? resolve() : reject(reason)));
    });
  }

  /** Does not count the time until the promise settles; the parent still counts it. */
  suspend(until: Promise<void>): void {
    const cancel = this.#cancelTimer;
    if (cancel === undefined || this.#isOver) return;
    cancel();
    const leftMs = this.#endsMs - this.#clock.monotonic();
    const resume = (): void => {
      if (this.#cancelTimer === cancel && !this.#isOver) this.start(leftMs, this.#message);
    };
    until.then(resume, resume);
  }

  /** Cancels the time limit; the parent still applies. */
  stop(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }

  /** Ends it now: the provider call is not read on. */
  cancel(reason: Failure): void {
    this.#end(reason, 0);
  }

  /** Ends `settleMs` early. */
  giveUp(): void {
    this.#cancelSettling?.();
    this.#abort();
  }

  /** Cancels all timers but that of `settleMs`. */
  close(): void {
    this.stop();
    this.#cancelGrace?.();
    if (!(this.#parent instanceof TimeLimit)) this.#parent.removeEventListener("abort", this.#follow);
    else this.#parent.#release(this);
  }

  #adopt(child: TimeLimit): void {
    if (this.#child === undefined) this.#child = child;
    else this.#child.#sibling = child;
  }

  #release(child: TimeLimit): void {
    if (this.#child === child) this.#child = child.#sibling;
    else if (this.#child !== undefined) this.#child.#sibling = undefined;
  }

  #abort(): void {
    this.#hasAborted = true;
    this.#controller?.abort(this.#reason);
  }

  #workEnded(): void {
    this.#workEndedMs = this.#clock.monotonic();
    this.#cancelSettling?.();
  }

  #end(reason: unknown, settleMs: number): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#settles = settleMs > 0;
    this.#reason = reason;
    this.#cancelTimer?.();
    if (settleMs === 0) this.#abort();
    else this.#cancelSettling = this.#clock.after(settleMs, () => this.#abort());
    for (let child = this.#child; child !== undefined; child = child.#sibling) child.#follow();
    this.#stopEmitting?.();
    const reject = (): void => this.#reject?.(reason);
    if (this.#room === undefined) return reject();
    // A caller that hardly reads must not outlast the hold of its budget.
    this.#cancelGrace = this.#clock.after(READ_GRACE_MS, reject);
    const settled = (): void => {
      this.#cancelGrace?.();
      reject();
    };
    this.#room.then(settled, settled);
  }
}
