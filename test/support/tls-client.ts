import { connect as connectHttp2, type ClientHttp2Session, type IncomingHttpHeaders } from "node:http2";
import { request as requestOnce, type RequestOptions } from "node:https";
import type { TcpSocketConnectOpts } from "node:net";
import { connect, type TLSSocket } from "node:tls";
import { Client, credentials } from "@grpc/grpc-js";
import type { CertificateAuthority, TestCertificate } from "./certificates.ts";

export interface TlsRequest extends RequestOptions {
  /** The authority of the server's certificate. */
  readonly authority: Pick<CertificateAuthority, "cert">;
  /** The client's certificate. Default: none. */
  readonly pair?: TestCertificate | undefined;
  readonly body?: string | Uint8Array;
}

/** An answer over TLS. */
export interface TlsAnswer {
  readonly status: number;
  readonly text: string;
  /** Serial number of the server's certificate. */
  readonly serial: string;
  readonly cookies: string;
}

/** Sends a request to `localhost`, by default on a connection of its own. Rejects with the connection's error. */
export function askTls(port: number, { authority, pair, body, ...options }: TlsRequest): Promise<TlsAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<TlsAnswer>();
  const target = { host: "localhost", port, ca: authority.cert, agent: false as const };
  const request = requestOnce({ ...target, ...pair, ...options }, (response) => {
    const { serialNumber: serial } = (response.socket as TLSSocket).getPeerCertificate();
    const cookies = String(response.headers["set-cookie"]);
    let text = "";
    response.on("data", (piece) => (text += String(piece)));
    response.on("error", reject);
    response.on("end", () => resolve({ status: response.statusCode!, text, serial, cookies }));
  });
  request.on("error", reject);
  request.end(body);
  return promise;
}

/** A client of gRPC with connections of its own. */
export function tlsGrpcClient(port: number, { authority, pair }: Pick<TlsRequest, "authority" | "pair">): Client {
  const ssl = credentials.createSsl(
    Buffer.from(authority.cert),
    pair && Buffer.from(pair.key),
    pair && Buffer.from(pair.cert),
  );
  return new Client(`localhost:${port}`, ssl, { "grpc.use_local_subchannel_pool": 1 });
}

/** A connection of HTTP/2, from an address and port of choice. */
export async function connectTlsHttp2(
  port: number,
  { authority, pair, ...options }: Pick<TlsRequest, "authority" | "pair"> & Omit<TcpSocketConnectOpts, "port">,
): Promise<{ readonly session: ClientHttp2Session; readonly socket: TLSSocket }> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const trust = { ca: authority.cert, checkServerIdentity: () => undefined, ALPNProtocols: ["h2"] };
  const socket = connect({ port, ...trust, ...pair, ...options }, () => resolve()).on("error", reject);
  await promise;
  const session = connectHttp2("https://localhost", { createConnection: () => socket }).on("error", () => undefined);
  return { session, socket };
}

/** Sends a gRPC call with an empty message. */
export function callGrpc(
  session: ClientHttp2Session,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ readonly status: string; readonly body: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ readonly status: string; readonly body: string }>();
  const call = { ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers", ...headers };
  const stream = session.request(call);
  let [status, body] = ["", ""];
  const note = (received: IncomingHttpHeaders): void => void (status = received["grpc-status"]?.toString() ?? status);
  stream.on("response", note).on("trailers", note).on("error", reject);
  stream.on("data", (piece: Buffer) => (body += piece.toString("latin1")));
  stream.on("close", () => resolve({ status, body }));
  // The frame of an empty message.
  stream.end(Buffer.alloc(5));
  return promise;
}
