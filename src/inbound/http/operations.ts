import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { Clock } from "../../core/clock.ts";
import type { TlsEntrance } from "../../net/tls-entrance.ts";
import type { Connections } from "../connections.ts";
import { PipelinedRequests } from "../pipelined-requests.ts";
import { requestClass } from "./request-class.ts";
import { shareRuns } from "./share-runs.ts";

export interface OperationsOptions {
  readonly host: string;
  /** 0 takes a free port. */
  readonly port: number;
  readonly metrics: { text(): Promise<string>; readonly contentType: string };
  readonly readiness: () => Readiness | Promise<Readiness>;
  /** Limits the connections of this port. */
  readonly connections: Pick<Connections, "add" | "onFull">;
  readonly clock: Pick<Clock, "monotonic">;
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

/** Limits of Node's server. A response that is not read for STALL_MS ends its connection. */
const LIMITS = { headersTimeout: 10_000, requestTimeout: 10_000, connectionsCheckingInterval: 1000 } as const;
const STALL_MS = 30_000;

/** Limit of requests of a connection whose responses are not sent yet; beyond it the connection is closed. */
const MAX_PIPELINED = 8;

interface Answer {
  readonly status: number;
  readonly type: string;
  /** Shared by all responses with it. */
  readonly body: Buffer;
}

/**
 * Starts the operations port with `OPERATIONS_PATHS`. It has no authentication: bind it to a private address. Requests that come
 * together share one rendering of the metrics, and one look at the readiness.
 */
export async function startOperationsServer(options: OperationsOptions): Promise<OperationsServer> {
  const { host, port, connections, clock, tls } = options;
  const answers = createAnswers(options);
  const pipelined = new PipelinedRequests();
  const unanswered = new WeakMap<Socket, number>();
  const count = (socket: Socket, more: 1 | -1): number => {
    const now = (unanswered.get(socket) ?? 0) + more;
    unanswered.set(socket, now);
    return now;
  };
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    const { socket } = request;
    // The parser still delivers requests of the same read.
    if (socket.destroyed) return;
    const isPipelined = count(socket, 1) > 1;
    response.once("close", () => count(socket, -1));
    // None of these paths takes a body.
    if (hasBody(request)) response.setHeader("connection", "close");
    const path = OPERATIONS_PATHS.find((one) => one === request.url) ?? "other";
    const answer = (): void => void answers[path]().then((one) => write(response, one));
    if (isPipelined) response.once("close", pipelined.add(socket, answer));
    else answer();
  };
  const isFull = (socket: Socket): boolean => (unanswered.get(socket) ?? 0) >= MAX_PIPELINED;
  const serverOptions = { ...LIMITS, IncomingMessage: requestClass({ clock, isFull }) };
  const server =
    tls === undefined
      ? createServer(serverOptions, handle)
      : createTlsServer({ ...serverOptions, ...tls.serverOptions }, handle);
  server.setTimeout(STALL_MS);
  const accept = (socket: Socket): boolean => connections.add(socket);
  if (tls === undefined) server.prependListener("connection", accept);
  else tls.guard(server as TlsServer, accept);
  const open = new Set<Socket>();
  server.on(tls === undefined ? "connection" : "secureConnection", (socket: Socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
  });
  // Connections without a response in progress may still have received a part of a request.
  connections.onFull(() => open.forEach((socket) => unanswered.get(socket) || socket.destroy()));
  await new Promise<void>((resolve, reject) => {
    server.on("error", reject);
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

/** The answers to requests, by path. They never reject. */
function createAnswers({
  metrics,
  readiness,
}: Pick<OperationsOptions, "metrics" | "readiness">): Readonly<
  Record<OperationsPath | "other", () => Promise<Answer>>
> {
  const alive = json(200, { status: "ok" });
  const other = json(404, { error: `not found; this port serves only ${OPERATIONS_PATHS.join(", ")}` });
  return {
    "/metrics": shareRuns(() =>
      metrics.text().then(
        (text) => ({ status: 200, type: metrics.contentType, body: Buffer.from(text) }),
        () => json(500, { error: "the metrics could not be collected" }),
      ),
    ),
    "/healthz": async () => alive,
    "/readyz": shareRuns(async () => {
      try {
        const facts = await readiness();
        return json(facts.ready ? 200 : 503, facts);
      } catch {
        return json(500, { error: "the readiness could not be determined" });
      }
    }),
    other: async () => other,
  };
}

function json(status: number, body: object): Answer {
  return { status, type: "application/json", body: Buffer.from(`${JSON.stringify(body)}\n`) };
}

function write(response: ServerResponse, { status, type, body }: Answer): void {
  if (response.destroyed) return;
  response
    .writeHead(status, { "content-type": type, "content-length": body.length, "cache-control": "no-store" })
    .end(body);
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || (headers["content-length"] ?? "0") !== "0";
}
