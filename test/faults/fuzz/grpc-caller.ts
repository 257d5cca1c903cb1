import { type ClientHttp2Session, connect as connectHttp2, constants, type IncomingHttpHeaders } from "node:http2";
import { connect } from "node:net";
import { flawOfCall, type GrpcAnswer } from "./grpc-answers.ts";
import type { GrpcInput } from "./grpc-inputs.ts";

/** How long an answer may take before it counts as missing. */
const PATIENCE_MS = 30_000;

/** What came of an input. */
export interface GrpcOutcome {
  /** The status, in words for people: `3 INVALID_REQUEST`, `HTTP 415`, or how the stream ended without one. */
  readonly ended: string;
  readonly flaw: string | undefined;
}

/** Makes calls one after another, on one raw HTTP/2 session for as long as the server keeps it. */
export class GrpcCaller {
  readonly #port: number;
  #session: ClientHttp2Session | undefined;

  constructor(port: number) {
    this.#port = port;
  }

  async send(input: GrpcInput): Promise<GrpcOutcome> {
    if (this.#session === undefined || this.#session.destroyed || this.#session.closed) {
      this.#session = connectHttp2(`http://127.0.0.1:${this.#port}`);
      // What ends the session ends its streams, which tell.
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
      error = new Error(`no answer within ${PATIENCE_MS} ms`);
      stream.close(constants.NGHTTP2_CANCEL);
    }, PATIENCE_MS);
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
    // Only when it is on its way: a stream that is reset before is never sent.
    else stream.write(body, () => setImmediate(() => stream.close(constants.NGHTTP2_CANCEL)));
  });
}

/** Sends the bytes of a whole connection, and gives up when it is not closed in time. */
export function sendConnection(port: number, bytes: Buffer): Promise<GrpcOutcome> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    const late = setTimeout(() => {
      socket.destroy();
      resolve({ ended: "never", flaw: `not closed within ${PATIENCE_MS} ms` });
    }, PATIENCE_MS);
    socket.on("error", () => undefined);
    socket.on("close", () => {
      clearTimeout(late);
      resolve({ ended: "closed", flaw: undefined });
    });
    socket.resume();
    socket.end(bytes);
  });
}
