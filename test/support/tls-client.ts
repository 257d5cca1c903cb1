import { request as requestOnce, type RequestOptions } from "node:https";
import type { TLSSocket } from "node:tls";
import { Client, credentials } from "@grpc/grpc-js";
import type { CertificateAuthority, TestCertificate } from "./certificates.ts";

export interface TlsRequest extends RequestOptions {
  /** The authority of the server's certificate. */
  readonly authority: Pick<CertificateAuthority, "cert">;
  /** The client's certificate. Default: none. */
  readonly pair?: TestCertificate | undefined;
  readonly body?: string;
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
