import type { Clock } from "../core/clock.ts";
import type { Failure } from "../core/failure.ts";

/** What is held by the calls of a key family, of an account, or of the process. */
export class Holding {
  /** Bytes of bodies that may be arriving at the same time. A single body always may. */
  readonly maxBytes: number;
  /** Slots. */
  calls = 0;
  /** Bytes of bodies that are arriving: as declared, or as far as they have come. */
  arrivingBytes = 0;
  /** Bytes of the bodies of all calls that hold a slot. */
  heldBytes = 0;
  /** At most this much of each body that is still unread, because its request waits for a slot. */
  waitingBytes = 0;
  /** Synchronous work done for its requests beyond its share of the event loop, in milliseconds. */
  debtMs = 0;
  /** When it last asked for a slot. */
  seenMs = 0;

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
  }

  /** Whether more bytes of a body may arrive of which `own` are arriving. */
  fits(bytes: number, own = 0): boolean {
    return this.arrivingBytes === own || this.arrivingBytes + bytes <= this.maxBytes;
  }

  /** More calls, and more bytes of their bodies that are arriving. */
  count(calls: number, bytes: number): void {
    this.calls += calls;
    this.arrivingBytes += bytes;
    this.heldBytes += bytes;
  }

  /** A call with a body of this length is over. */
  end(bytes: number): void {
    this.calls -= 1;
    this.heldBytes -= bytes;
  }

  /** Whether nothing is known of it that matters a second later. */
  isIdle(nowMs: number): boolean {
    return this.calls === 0 && this.waitingBytes === 0 && this.debtMs <= 0 && nowMs - this.seenMs > 1_000;
  }
}

/** Those that a slot counts for. */
export interface Holders {
  readonly key: Holding;
  readonly account: Holding;
  readonly process: Holding;
}

/** What reading a body counts as: four milliseconds of work for a mebibyte. */
export const READ_MS_PER_BYTE = 4 / (1024 * 1024);

/** A body of unknown length is charged in steps of this many bytes. */
const STEP_BYTES = 64 * 1024;

export interface SlotPorts {
  readonly clock: Pick<Clock, "monotonic">;
  /** What a body that does not fit is refused with. */
  readonly noRoom: (holders: Holders) => Failure;
  /** Is told how long synchronous work took, in milliseconds. */
  readonly worked: (ms: number) => void;
  /** Is called once, at the end. */
  readonly ended: () => void;
}

/** One call's share of the process: from before its body is read to its end. */
export class Slot {
  readonly holders: Holders;
  readonly sinceMs: number;
  readonly #ports: SlotPorts;
  #bytes: number;
  #hasArrived = false;
  #hasEnded = false;

  /** `bytes` is the declared length of the body; undefined when it was not declared. */
  constructor(holders: Holders, bytes: number | undefined, ports: SlotPorts) {
    this.holders = holders;
    this.sinceMs = ports.clock.monotonic();
    this.#ports = ports;
    this.#bytes = bytes ?? STEP_BYTES;
    this.#count(1, this.#bytes);
  }

  /** This many bytes of the body have come. Throws `rate_limited` or `overloaded` when there is no room for them. */
  received(bytes: number): void {
    if (bytes <= this.#bytes) return;
    const more = Math.ceil((bytes - this.#bytes) / STEP_BYTES) * STEP_BYTES;
    const { key, account, process } = this.holders;
    const fits = [key, account, process].every((holding) => holding.fits(more, this.#bytes));
    if (!fits) throw this.#ports.noRoom(this.holders);
    this.#bytes += more;
    this.#count(0, more);
  }

  /** The body has been made a request of, or will not be read any further. */
  arrived(): void {
    if (this.#hasArrived) return;
    this.#hasArrived = true;
    const { key, account, process } = this.holders;
    key.arrivingBytes -= this.#bytes;
    account.arrivingBytes -= this.#bytes;
    process.arrivingBytes -= this.#bytes;
  }

  /** Does the synchronous work that makes a request of the body, and charges its key with the time of both. */
  work<T>(run: () => T): T {
    const sinceMs = this.#ports.clock.monotonic();
    try {
      return run();
    } finally {
      const ms = this.#ports.clock.monotonic() - sinceMs;
      this.holders.key.debtMs += ms + this.#bytes * READ_MS_PER_BYTE;
      this.#ports.worked(ms);
    }
  }

  /** The call is over. */
  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.arrived();
    const { key, account, process } = this.holders;
    key.end(this.#bytes);
    account.end(this.#bytes);
    process.end(this.#bytes);
    this.#ports.ended();
  }

  #count(calls: number, bytes: number): void {
    const { key, account, process } = this.holders;
    key.count(calls, bytes);
    account.count(calls, bytes);
    process.count(calls, bytes);
  }
}
