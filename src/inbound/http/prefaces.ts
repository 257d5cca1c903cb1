import type { Socket } from "node:net";

/** First bytes of a client of HTTP/2 (RFC 9113, 3.4). No request of HTTP/1.1 begins with it. */
const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

/** Time limit of the first bytes, as of a request's headers. */
const WAIT_MS = 10_000;

/** Connections over plain TCP whose protocol is not known yet: their first bytes tell. */
export class Prefaces {
  readonly #waiting = new Set<Socket>();

  /** Calls `serve` when the protocol of a connection is known, with the first bytes still to be read. */
  read(socket: Socket, serve: (protocol: "http1" | "http2") => void): void {
    let head = Buffer.alloc(0);
    const give = (protocol: "http1" | "http2"): void => {
      stop();
      socket.unshift(head);
      serve(protocol);
    };
    const look = (): void => {
      for (let piece = read(socket); piece !== null; piece = read(socket)) head = Buffer.concat([head, piece]);
      const length = Math.min(head.length, PREFACE.length);
      if (!head.subarray(0, length).equals(PREFACE.subarray(0, length))) give("http1");
      else if (length === PREFACE.length) give("http2");
    };
    const end = (): void => void socket.destroy();
    const stop = (): void => {
      clearTimeout(timer);
      this.#waiting.delete(socket);
      socket.off("readable", look).off("end", end).off("error", end).off("close", stop);
    };
    // After a time in which the event loop was busy, sockets are read before this immediate.
    const timer = setTimeout(() => setImmediate(() => this.#waiting.has(socket) && end()), WAIT_MS);
    this.#waiting.add(socket);
    socket.on("readable", look).on("end", end).on("error", end).on("close", stop);
  }

  /** Closes all connections whose protocol is not known. */
  close(): void {
    for (const socket of this.#waiting) socket.destroy();
  }
}

function read(socket: Socket): Buffer | null {
  return socket.read() as Buffer | null;
}
