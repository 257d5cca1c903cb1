import { type ClientHttp2Session, connect as connectHttp2, constants, type IncomingHttpHeaders } from "node:http2";
import { connect } from "node:net";
import { flawOfCall, type GrpcAnswer } from "./grpc-answers.ts";
import type { GrpcInput } from "./grpc-inputs.ts";

/** Timeout after which a response counts as missing. */
const TIMEOUT_MS = 30_000;

/** Result of an input. */
export interface GrpcOutcome {
  /** The status as text: `3 INVALID_REQUEST`, `HTTP 415`, or how the stream ended without one. */
  readonly ended: string;
  readonly flaw: string | undefined;
}

/** Sends calls in sequence on one raw HTTP/2 session while the server keeps it open. */
export class GrpcCaller {
  readonly #port: number;
  #session: ClientHttp2Session | undefined;

  constructor(port: number) {
    this.#port = port;
  }

  async send(input: GrpcInput): Promise<GrpcOutcome> {
    if (this.#session === undefined || this.#session.destroyed || this.#session.closed) {
      this.#session = connectHttp2(`http://127.0.0.1:${this.#port}`);
      // Streams report the end of their session.
      this.#session.on("error", () => undefined);
    }
    return call(this.#session, input);
  }

  close(): void {
    this.#session?.destroy();
  }
}

function call(session: ClientHttp2Session, { headers, body, stays }: GrpcInput): Promise<GrpcOutcome> {
  return new Promise((resolve) => {
    const stream = session.request(headers, { endStream: false });
    const pieces: Buffer[] = [];
    let head: IncomingHttpHeaders = {};
    let trailers: IncomingHttpHeaders = {};
    let error: unknown;
    const late = setTimeout(() => {
      error = new Error(`no answer within ${TIMEOUT_MS} ms`);
      stream.close(constants.NGHTTP2_CANCEL);
    }, TIMEOUT_MS);
    stream.on("response", (received) => {
      head = received;
    });
    stream.on("trailers", (received) => {
      trailers = received;
    });
    stream.on("data", (piece: Buffer) => pieces.push(piece));
    stream.on("error", (reason) => {
      error ??= reason;
    });
    stream.on("close", () => {
      clearTimeout(late);
      const answer: GrpcAnswer = { head, trailers, body: Buffer.concat(pieces), error, reset: stream.rstCode };
      resolve(stays ? flawOfCall(answer, headers) : { ended: "left", flaw: undefined });
    });
    if (stays) stream.end(body);
    // Only after the request was sent: a stream that is reset earlier is never sent.
    else stream.write(body, () => setImmediate(() => stream.close(constants.NGHTTP2_CANCEL)));
  });
}

/** Sends the bytes of a whole connection; a timeout counts as a flaw. */
export function sendConnection(port: number, bytes: Buffer): Promise<GrpcOutcome> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    const late = setTimeout(() => {
      socket.destroy();
      resolve({ ended: "never", flaw: `not closed within ${TIMEOUT_MS} ms` });
    }, TIMEOUT_MS);
    socket.on("error", () => undefined);
    socket.on("close", () => {
      clearTimeout(late);
      resolve({ ended: "closed", flaw: undefined });
    });
    socket.resume();
    socket.end(bytes);
  });
}
