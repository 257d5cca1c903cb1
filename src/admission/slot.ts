import type { Clock } from "../core/clock.ts";
import { Failure } from "../core/failure.ts";
import { afterThisLoopTurn } from "../scheduling/read-scheduler.ts";

/**
 * Largest share of a limit that one body or answer counts: a single one always fits, two that are larger than the limit do not, and
 * those of other callers fit beside it, however slowly it arrives or is read.
 */
const LARGE_SHARE = 0.6;

/** Slots and bytes held by the calls of a key family, an account or the process. */
export class Holding {
  /** Limit of bytes of arriving bodies, and of large answers. A single body or answer may exceed it. */
  readonly maxBytes: number;
  /** What one body or answer counts at most. */
  readonly #maxCounted: number;
  /** Slots in use. */
  calls = 0;
  /** Bytes of bodies that are being received: the declared length, or the received bytes, at most LARGE_SHARE of the limit for each. */
  arrivingBytes = 0;
  /** Bytes of large answers, from before their providers are asked until they are sent, at most LARGE_SHARE of the limit for each. */
  answerBytes = 0;
  /** Bytes of the bodies and large answers of all calls that hold a slot. */
  heldBytes = 0;
  /** Calls that wait for a slot. */
  waiting = 0;
  /** Unread bytes of bodies whose requests wait for a slot, at most UNREAD_BYTES each. */
  waitingBytes = 0;
  /** Synchronous work for its requests beyond its share of the event loop, in milliseconds. */
  debtMs = 0;
  /** Time of the last request for a slot. */
  seenMs = 0;

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
    this.#maxCounted = Math.floor(maxBytes * LARGE_SHARE);
  }

  /** Whether a body of `bytes` fits, `own` of which are counted already. */
  fits(bytes: number, own = 0): boolean {
    return this.arrivingBytes + this.#counted(bytes) - this.#counted(own) <= this.maxBytes;
  }

  /** Whether a large answer of `bytes` fits, `own` of which are counted already. */
  fitsAnswer(bytes: number, own = 0): boolean {
    return this.answerBytes + this.#counted(bytes) - this.#counted(own) <= this.maxBytes;
  }

  /** Counts an arriving body of `bytes`, `own` of which are counted already. */
  arrives(bytes: number, own = 0): void {
    this.arrivingBytes += this.#counted(bytes) - this.#counted(own);
    this.heldBytes += bytes - own;
  }

  /** Ends the arrival of a body of `bytes`, which the call still holds. */
  arrived(bytes: number): void {
    this.arrivingBytes -= this.#counted(bytes);
  }

  /** Counts a large answer of `bytes`, `own` of which are counted already. */
  countAnswer(bytes: number, own = 0): void {
    this.answerBytes += this.#counted(bytes) - this.#counted(own);
    this.heldBytes += bytes - own;
  }

  /** Ends a call with a body and an answer of these lengths. */
  end(bytes: number, answerBytes: number): void {
    this.calls -= 1;
    this.heldBytes -= bytes;
    this.countAnswer(0, answerBytes);
  }

  /** Whether this holding can be removed. */
  isIdle(nowMs: number): boolean {
    return this.calls === 0 && this.waitingBytes === 0 && this.debtMs <= 0 && nowMs - this.seenMs > 1_000;
  }

  #counted(bytes: number): number {
    return Math.min(bytes, this.#maxCounted);
  }
}

/** The holdings that a slot counts against. */
export interface Holders {
  readonly key: Holding;
  readonly account: Holding;
  readonly process: Holding;
}

/** Work charged for reading a body: 4 ms per MiB. */
export const READ_MS_PER_BYTE = 4 / (1024 * 1024);

/** Step in which a body of unknown length is charged, in bytes. */
const STEP_BYTES = 64 * 1024;

/** Largest share of the process's limit that one answer counts, so that it does not block all other keys. */
const ANSWER_SHARE = 0.5;

/** Limits of one body and of one expected answer, in bytes. */
export interface Largest {
  readonly body: number;
  readonly answer: number;
}

/** No such limits. */
export const UNLIMITED: Largest = { body: Infinity, answer: Infinity };

const MIB = 1024 * 1024;

/** Throws `request_too_large` for a body, or the answer to one, that this process has no memory for. */
export function requireSize(largest: Largest, what: keyof Largest, bytes = 0): void {
  const most = largest[what];
  if (bytes <= most) return;
  const limit = `${Math.floor(most / MIB)} MiB, the limit of this process with its memory`;
  const text =
    what === "body"
      ? `The request body is larger than ${limit}.`
      : `The answer would take ${Math.ceil(bytes / MIB)} MiB, more than ${limit}. Send fewer inputs, or ask for fewer dimensions.`;
  throw new Failure("request_too_large", text);
}

export interface SlotPorts {
  readonly clock: Pick<Clock, "monotonic">;
  readonly largest: Largest;
  /** The failure of bytes that do not fit. */
  readonly noRoom: (holders: Holders, bytes: number, what?: "requests" | "answers") => Failure;
  /** `AdmissionControl.beforeWork`. */
  readonly beforeWork: (slot: Slot) => Promise<void> | undefined;
  /** Called with the duration of synchronous work in milliseconds. */
  readonly worked: (ms: number) => void;
  /** Called with 1 when a call begins to wait for memory or for the debt of its key, and with -1 when it continues. */
  readonly idle: (change: 1 | -1) => void;
  /** Called once, at the end. */
  readonly ended: () => void;
}

/** The slot of one call, from before its body is read to its end. */
export class Slot {
  readonly holders: Holders;
  readonly sinceMs: number;
  readonly #ports: SlotPorts;
  #bytes: number;
  #answerBytes = 0;
  #waits = 0;
  #hasArrived = false;
  #hasEnded = false;

  /** `bytes`: declared length of the body; undefined when it was not declared. */
  constructor(holders: Holders, bytes: number | undefined, ports: SlotPorts) {
    this.holders = holders;
    this.sinceMs = ports.clock.monotonic();
    this.#ports = ports;
    this.#bytes = bytes ?? STEP_BYTES;
    for (const holding of this.#holdings) {
      holding.calls += 1;
      holding.arrives(this.#bytes);
    }
  }

  /** Records received bytes of the body. Throws `rate_limited`, `overloaded` or `request_too_large` when they exceed a limit. */
  received(bytes: number): void {
    if (bytes <= this.#bytes) return;
    requireSize(this.#ports.largest, "body", bytes);
    const more = Math.ceil((bytes - this.#bytes) / STEP_BYTES) * STEP_BYTES;
    const all = this.#bytes + more;
    if (!this.#holdings.every((holding) => holding.fits(all, this.#bytes)))
      throw this.#ports.noRoom(this.holders, more);
    for (const holding of this.#holdings) holding.arrives(all, this.#bytes);
    this.#bytes = all;
  }

  /** Call it when the body was parsed, or is not read any further. */
  arrived(): void {
    if (this.#hasArrived) return;
    this.#hasArrived = true;
    for (const holding of this.#holdings) holding.arrived(this.#bytes);
  }

  /**
   * Counts a large answer until the end of the call. `expectedBytes` is derived from the request and is not bounded; it counts up to
   * ANSWER_SHARE of the process's limit. Throws `rate_limited`, `overloaded` or `request_too_large` when it exceeds a limit.
   */
  holdAnswer(expectedBytes: number): void {
    requireSize(this.#ports.largest, "answer", expectedBytes);
    const more = Math.min(expectedBytes, this.holders.process.maxBytes * ANSWER_SHARE);
    const all = this.#answerBytes + more;
    if (!this.#holdings.every((holding) => holding.fitsAnswer(all, this.#answerBytes)))
      throw this.#ports.noRoom(this.holders, more, "answers");
    this.#countAnswer(all);
  }

  /** Counts the bytes of a received answer beyond those already held. */
  answered(bytes: number): void {
    if (bytes > this.#answerBytes && !this.#hasEnded) this.#countAnswer(bytes);
  }

  /** The call does nothing until the promise settles, so meanwhile it does not count as working. */
  idleUntil(until: Promise<void>): void {
    if (this.#hasEnded) return;
    this.#waits += 1;
    if (this.#waits === 1) this.#ports.idle(1);
    const resume = (): void => {
      this.#waits -= 1;
      if (this.#waits === 0 && !this.#hasEnded) this.#ports.idle(-1);
    };
    until.then(resume, resume);
  }

  /** Runs the synchronous work that parses the body, and charges its time and the reading to the key. */
  parse<T>(run: () => T): T {
    this.holders.key.debtMs += this.#bytes * READ_MS_PER_BYTE;
    return this.work(run);
  }

  /** Runs synchronous work for the request, and charges its time to the key. */
  work<T>(run: () => T): T {
    const sinceMs = this.#ports.clock.monotonic();
    try {
      return run();
    } finally {
      this.worked(this.#ports.clock.monotonic() - sinceMs);
    }
  }

  /** Charges the time of synchronous work for the request to the key, in milliseconds. */
  worked(ms: number): void {
    this.holders.key.debtMs += ms;
    this.#ports.worked(ms);
  }

  /**
   * Runs synchronous work in a later turn of the event loop, when the key is not in debt and the turn has time left, so that requests
   * that arrived together do not all run in one turn. Rejects with `rate_limited` when the key stays in debt, and with the reason of
   * the signal.
   */
  async inTurn<T>(work: () => T, signal: AbortSignal): Promise<T> {
    // Requests that arrived together continue together. A disconnected caller may be noticed only now.
    for (let turn: Promise<void> | undefined = afterThisLoopTurn(); turn !== undefined;) {
      await turn;
      signal.throwIfAborted();
      turn = this.#ports.beforeWork(this);
    }
    return work();
  }

  /** Releases the slot. */
  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.arrived();
    for (const holding of this.#holdings) holding.end(this.#bytes, this.#answerBytes);
    if (this.#waits > 0) this.#ports.idle(-1);
    this.#ports.ended();
  }

  #countAnswer(bytes: number): void {
    for (const holding of this.#holdings) holding.countAnswer(bytes, this.#answerBytes);
    this.#answerBytes = bytes;
  }

  get #holdings(): readonly Holding[] {
    const { key, account, process } = this.holders;
    return [key, account, process];
  }
}
