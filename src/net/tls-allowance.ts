/** Longest interval for which a check grants an allowance. Otherwise an event loop that a flood delays would grant the flood more. */
const MAX_EARNED_MS = 500;

/**
 * Allowance of a connection for bytes that TLS adds to the peer's data. `atOnce`: a burst. `small`: per byte of data, up to
 * `smallPerMs`. `large`: per byte of further data. A record adds up to 29 bytes to its data. A KeyUpdate has 27 bytes without data, and
 * takes 30 µs.
 */
interface Overhead {
  readonly atOnce: number;
  readonly small: number;
  readonly smallPerMs: number;
  readonly large: number;
}

/** Of a client: frames of HTTP/2 may have nine bytes, and the limit allows 5,800 such records a second. Bodies have thousands per record. */
export const OF_CLIENT: Overhead = { atOnce: 64 * 1024, small: 4, smallPerMs: 128, large: 1 / 16 };
/** Of a provider: servers may send each event of a stream in a record of its own, and a cached answer at once. */
export const OF_PROVIDER: Overhead = { ...OF_CLIENT, large: 1 };

/** Bytes that a TLS connection has received: as they came, and the peer's data in them. */
export interface ReceivedBytes {
  readonly encrypted: number;
  readonly data: number;
}

/** Bounds the bytes that a TLS connection receives without data, of which no other limit knows. */
export class TlsAllowance {
  readonly #overhead: Overhead;
  #seen: ReceivedBytes;
  #credit: number;

  /** `seen`: the bytes of the handshake. */
  constructor(overhead: Overhead, seen: ReceivedBytes) {
    this.#overhead = overhead;
    this.#seen = seen;
    this.#credit = overhead.atOnce;
  }

  /** Counts the bytes since the last check, which was `elapsedMs` ago. Returns whether they exceed the allowance. */
  isExceeded({ encrypted, data }: ReceivedBytes, elapsedMs: number): boolean {
    const { atOnce, small, smallPerMs, large } = this.#overhead;
    const before = this.#seen;
    if (encrypted === before.encrypted) return false;
    const more = data - before.data;
    const ms = Math.min(elapsedMs, MAX_EARNED_MS);
    const earned = Math.min(more * small, ms * smallPerMs) + more * large;
    this.#credit = Math.min(atOnce, this.#credit + earned - (encrypted - before.encrypted - more));
    this.#seen = { encrypted, data };
    return this.#credit < 0;
  }
}
