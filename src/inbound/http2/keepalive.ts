import type { Http2Session } from "node:http2";

export interface KeepaliveOptions {
  /** Time between an acknowledged PING and the next one. */
  readonly everyMs: number;
  /** Limit for the acknowledgement of a PING. */
  readonly answerMs: number;
  /** Error of the streams. Default: the connection is destroyed without an error. */
  readonly error?: Error;
}

/**
 * Longest pause in both directions of a closing connection. It cannot be pinged, and a whole answer may take as long as the
 * time limit of its call.
 */
const CLOSING_SILENCE_MS = 20 * 60_000;

/**
 * Sends PINGs on a connection and destroys it, with its streams, when one is not answered. Stops when GOAWAY was sent or
 * received, because Node sends no PING after it. The keepalive of grpc-js is not used: it treats this as a dead connection and
 * ends all streams that may finish after GOAWAY.
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
    // Pending reads first: this process may have been busy.
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
