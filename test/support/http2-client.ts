import { once } from "node:events";
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from "node:http2";
import { onTestFinished } from "vitest";
import type { CertificateAuthority, TestCertificate } from "./certificates.ts";

/** An answer over HTTP/2. */
export interface Http2Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** Code of the RST_STREAM that closed it; 0: none, or NO_ERROR. */
  readonly resetCode: number;
}

/** Connects over plain TCP, or with TLS where an authority is given. Closed at the end of the test. */
export function connectHttp2(
  port: number,
  { authority, pair }: { readonly authority?: CertificateAuthority; readonly pair?: TestCertificate | undefined } = {},
): ClientHttp2Session {
  const session =
    authority === undefined
      ? connect(`http://127.0.0.1:${port}`)
      : connect(`https://localhost:${port}`, { ca: authority.cert, ...pair });
  session.on("error", () => undefined);
  onTestFinished(() => session.destroy());
  return session;
}

/** Sends a request with a whole body. */
export function askHttp2(
  session: ClientHttp2Session,
  headers: OutgoingHttpHeaders,
  body?: string | Buffer,
): Promise<Http2Answer> {
  const stream = session.request(headers, { endStream: body === undefined });
  if (body !== undefined) stream.end(body);
  return answerOf(stream);
}

/** Reads the answer of a stream until it is closed. */
export async function answerOf(stream: ClientHttp2Stream): Promise<Http2Answer> {
  let text = "";
  let headers: IncomingHttpHeaders = {};
  stream.setEncoding("utf8");
  stream.on("response", (received) => (headers = received));
  stream.on("data", (piece: string) => (text += piece));
  stream.on("error", () => undefined);
  await once(stream, "close");
  return { status: Number(headers[":status"] ?? 0), headers, text, resetCode: stream.rstCode };
}
