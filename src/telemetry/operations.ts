import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { TlsEntrance } from "../net/tls-entrance.ts";
import type { Metrics } from "./metrics.ts";

export interface OperationsOptions {
  readonly host: string;
  /** 0 takes a free port. */
  readonly port: number;
  readonly metrics: Pick<Metrics, "text" | "contentType">;
  readonly readiness: () => Readiness | Promise<Readiness>;
  /** Default: plain TCP. */
  readonly tls?: TlsEntrance | undefined;
}

/** Body of `/readyz`: whether new work is accepted, and the facts behind it. */
export interface Readiness {
  readonly ready: boolean;
  readonly [fact: string]: unknown;
}

/** The operations port, listening. */
export interface OperationsServer {
  readonly port: number;
  close(): void;
}

/** All paths of the operations port. */
export const OPERATIONS_PATHS = ["/metrics", "/healthz", "/readyz"] as const;

type OperationsPath = (typeof OPERATIONS_PATHS)[number];

/** Starts the operations port with `OPERATIONS_PATHS`. It has no authentication: bind it to a private address. */
export async function startOperationsServer({
  host,
  port,
  metrics,
  readiness,
  tls,
}: OperationsOptions): Promise<OperationsServer> {
  const limits = { headersTimeout: 10_000, requestTimeout: 10_000, connectionsCheckingInterval: 1000 };
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    const reply = (status: number, type: string, text: string): void => {
      response.writeHead(status, { "content-type": type, "cache-control": "no-store" }).end(text);
    };
    const json = (status: number, body: object): void => reply(status, "application/json", `${JSON.stringify(body)}\n`);
    const answers: Readonly<Record<OperationsPath, () => void>> = {
      "/metrics": () =>
        void metrics.text().then(
          (text) => reply(200, metrics.contentType, text),
          () => json(500, { error: "the metrics could not be collected" }),
        ),
      "/healthz": () => json(200, { status: "ok" }),
      "/readyz": () =>
        void Promise.resolve(readiness()).then(
          (facts) => json(facts.ready ? 200 : 503, facts),
          () => json(500, { error: "the readiness could not be determined" }),
        ),
    };
    const path = OPERATIONS_PATHS.find((one) => one === request.url);
    if (path === undefined) json(404, { error: `not found; this port serves only ${OPERATIONS_PATHS.join(", ")}` });
    else answers[path]();
  };
  const server =
    tls === undefined ? createServer(limits, handle) : createTlsServer({ ...limits, ...tls.serverOptions }, handle);
  // The port is the operator's own: its connections are not counted.
  tls?.guard(server as TlsServer, () => true);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => resolve());
  });
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      tls?.close();
      server.close();
      server.closeAllConnections();
    },
  };
}
