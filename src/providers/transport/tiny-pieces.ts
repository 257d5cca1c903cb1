import { ResponseError } from "./response-error.ts";

/** Pieces of an answer below this size are counted: a server-sent event is larger. */
const TINY_BYTES = 64;
/** Limit of counted pieces of a connection in a second: 64 streams of 250 tokens a second, each of them written in two. */
const MAX_TINY = 16 * 1024;

/**
 * Limits the tiny pieces of a connection to a provider: each takes a turn through Node and the parser however small it is, and one
 * turn of the event loop reads up to 2 MB of a socket.
 */
export class TinyPieces {
  #count = 0;
  #sinceMs = 0;

  /** Counts a piece. Throws a `ResponseError` beyond the limit. */
  add(bytes: number): void {
    if (bytes >= TINY_BYTES) return;
    if (this.#count === 0) this.#sinceMs = performance.now();
    if (++this.#count <= MAX_TINY) return;
    this.#count = 0;
    if (performance.now() - this.#sinceMs < 1000)
      throw new ResponseError(
        `More than ${MAX_TINY} pieces of answers in a second have less than ${TINY_BYTES} bytes.`,
      );
  }
}
