import { ResponseError } from "./response-error.ts";

/** Limit of small pieces: pieces below `below` bytes count, and `max` of them are allowed per second. */
interface PieceLimit {
  readonly below: number;
  readonly max: number;
}

/** Limit over HTTP/1.1: 64 streams of 250 tokens a second, each event written in two pieces. A whole server-sent event is larger. */
export const TINY: PieceLimit = { below: 64, max: 16 * 1024 };
/** Limit over HTTP/2, where a piece costs several times as much as over HTTP/1.1: 64 streams of 750 tokens a second. */
export const SMALL: PieceLimit = { below: 1024, max: 48 * 1024 };

/**
 * Limits the small pieces of a connection to a provider. Each piece passes through Node and the parser, however small it is, and one turn
 * of the event loop reads up to 2 MB of a socket.
 */
export class SmallPieces {
  readonly #limit: PieceLimit;
  #count = 0;
  #sinceMs = 0;

  constructor(limit: PieceLimit) {
    this.#limit = limit;
  }

  /** Counts a piece. Throws a `ResponseError` beyond the limit. */
  add(bytes: number): void {
    const { below, max } = this.#limit;
    if (bytes >= below) return;
    if (this.#count === 0) this.#sinceMs = performance.now();
    if (++this.#count <= max) return;
    this.#count = 0;
    if (performance.now() - this.#sinceMs < 1000)
      throw new ResponseError(`More than ${max} pieces of answers in a second have less than ${below} bytes.`);
  }
}
