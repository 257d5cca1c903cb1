import type { Http2Session } from "node:http2";

export interface KeepaliveOptions {
  /** From one PING's answer to the next PING. */
  readonly everyMs: number;
  /** How long an answer may take. */
  readonly answerMs: number;
  /** What streams fail with. Default: the connection is destroyed without an error. */
  readonly error?: Error;
}

/**
 * How long a connection that is closing may be silent in both directions. It cannot be asked, and a whole answer may take
 * as long as its call's time limit.
 */
const CLOSING_SILENCE_MS = 20 * 60_000;

/**
 * Sends PINGs on a connection and destroys it, with its streams, when one is not answered. Stops when GOAWAY was sent or
 * received: Node sends no PING from then on. grpc-js has a keepalive of its own, on either side, that takes this refusal
 * for a dead connection and ends all streams that GOAWAY would let finish; so it is not used.
 */
export function keepAlive(session: Http2Session, { everyMs, answerMs, error }: KeepaliveOptions): void {
  let timer: NodeJS.Timeout;
  const wait = (): void => {
    timer = setTimeout(ping, everyMs).unref();
  };
  const ping = (): void => {
    if (session.destroyed) return;
    if (session.closed) {
      session.setTimeout(CLOSING_SILENCE_MS, () => session.destroy(error));
      return;
    }
    // An answer that has arrived is read first: this process may have been busy for so long.
    timer = setTimeout(() => setImmediate(giveUp), answerMs).unref();
    const giveUp = (): void => {
      if (!answered) session.destroy(error);
    };
    let answered = false;
    session.ping(() => {
      if (answered) return;
      answered = true;
      clearTimeout(timer);
      wait();
    });
  };
  session.once("close", () => clearTimeout(timer));
  wait();
}
