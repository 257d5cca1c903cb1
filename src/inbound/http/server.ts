import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import { type AddressInfo, Server as NetServer, type Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Model } from "../../../gen/parley/v1/model_pb.js";
import { Failure } from "../../core/failure.ts";
import type { Operation } from "../../formats/format.ts";
import type { TlsEntrance } from "../../net/tls-entrance.ts";
import { requestIdFrom } from "../calls.ts";
import { LISTEN_BACKLOG, quietTurn } from "../connections.ts";
import { authorizationOf } from "../current-key.ts";
import type { GrpcOnHttp } from "../http2/shared-port.ts";
import { PipelinedRequests } from "../pipelined-requests.ts";
import type { EdgeServices, KeyPrincipal } from "../services.ts";
import { Arrivals } from "./arrivals.ts";
import { callerOf, completion, embeddings, explanation, keptAnswers, modelList, tokenCount } from "./completion.ts";
import { connectHandler, writeConnectError } from "./connect.ts";
import { type Documents, sendDocument } from "./documents.ts";
import { WRITE_STALL_MS } from "../drain.ts";
import { absoluteForm, Exchange, type ExchangeFacts, MAX_HOST_CHARS } from "./exchange.ts";
import { type Http2Call, Http2Sessions } from "./http2-sessions.ts";
import { closeIdleAfterRead } from "./idle-timeout.ts";
import { ModelTexts } from "./model-texts.ts";
import { Prefaces } from "./prefaces.ts";
import { shareByAlpn, shareByPreface } from "./protocol-choice.ts";
import { requestClass } from "./request-class.ts";
import { adviseOn, createCors, findRoute, formatOf, isConnect, isForPages, type Route } from "./routes.ts";
import { limitUnread } from "./unread-response.ts";

export interface HttpOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** Origins whose pages may call `/v1`; `*` for all. */
  readonly corsOrigins: readonly string[];
  /** Public files about the API. Default: none. */
  readonly documents?: Documents | undefined;
  /** The dashboard. Default: none. */
  readonly console?: Mounted | undefined;
  /** Default: plain TCP. */
  readonly tls?: TlsEntrance | undefined;
  /** gRPC on the same port, which then has HTTP/2 over plain TCP too. Default: none. */
  readonly grpc?: GrpcOnHttp | undefined;
  /** Time after which an unread response closes its connection, in milliseconds. Default: 30 seconds. */
  readonly stallMs?: number;
}

/** A mounted part of the site with its own request handling. */
interface Mounted {
  /** Whether it handles the path (without query). */
  handles(path: string): boolean;
  /** Answers a request. Never throws. */
  handle(request: IncomingMessage, response: ServerResponse, requestId: string): void;
  /** Answers a browser's request for a missing page; returns false, without answering, for other requests. */
  handleMissing(request: IncomingMessage, response: ServerResponse, requestId: string): boolean;
  /** Ends streams without an end, before the server stops. */
  drain(): void;
}

/** The listening HTTP server. */
export interface HttpServer {
  readonly port: number;
  /**
   * `/readyz` fails; all requests are still served. Connections of HTTP/1.1 close after their next response, those of HTTP/2
   * stay open until `drain`.
   */
  announce(): void;
  /**
   * As `announce`; also closes idle connections and refuses new ones. Connections of HTTP/2 with requests get GOAWAY with their next
   * request, or when all are answered. Resolves when all connections of the listener are closed.
   */
  drain(): Promise<void>;
  /** Closes all connections. */
  close(): void;
}

/** Time limits of Node's server. The checking interval, 30 s by default, bounds how late they take effect. */
const LIMITS = {
  headersTimeout: 10_000,
  requestTimeout: 60_000,
  connectionsCheckingInterval: 1000,
  keepAliveTimeout: 65_000,
  maxHeaderSize: 16 * 1024,
  // Node would answer a missing Host header with an empty 400; see `refuseAmbiguous`.
  requireHostHeader: false,
  insecureHTTPParser: false,
  noDelay: true,
} as const;

/** Limit of headers of a request. */
const MAX_HEADERS = 100;

/** Node's error codes of a request that did not arrive in time, and of one whose headers are too large. */
const TOO_LATE = "ERR_HTTP_REQUEST_TIMEOUT";
const TOO_LARGE = "HPE_HEADER_OVERFLOW";

/** Interval between records of refused HTTP/1.0 requests: health checks come many times a second. */
const OLD_RECORDED_EVERY_MS = 60_000;

/** Interval at which a drain closes idle connections, in milliseconds. */
const SWEEP_MS = 50;

/** Starts the HTTP server. Rejects when it cannot listen. */
export async function startHttpServer(
  services: EdgeServices,
  { host, port, ...parts }: HttpOptions,
): Promise<HttpServer> {
  const front = new Front(services, parts);
  const requests = requestClass({ clock: services.clock, isFull: (socket) => front.isFull(socket) });
  const options = { ...LIMITS, IncomingMessage: requests };
  const handle = (request: IncomingMessage, response: ServerResponse): void => front.handle(request, response);
  const { tls } = parts;
  const server =
    tls === undefined ? createServer(options, handle) : createTlsServer({ ...options, ...tls.serverOptions }, handle);
  // With a listener `100 Continue` is sent when the body is read, not before.
  server.on("checkContinue", handle);
  server.on("checkExpectation", handle);
  server.on("clientError", (error, socket) => front.refuseMalformed(error, socket as Socket));
  closeIdleAfterRead(server);
  server.maxHeadersCount = MAX_HEADERS;
  const accept = (socket: Socket): boolean => services.connections.add(socket);
  const http2 = tls === undefined && parts.grpc === undefined ? undefined : front.http2();
  const prefaces = new Prefaces();
  if (tls !== undefined) {
    shareByAlpn(server as TlsServer, http2!);
    tls.guard(server as TlsServer, accept);
  } else if (http2 === undefined) server.prependListener("connection", accept);
  else shareByPreface(server, { http2, prefaces, accept });
  services.connections.onFull(() => {
    server.closeIdleConnections();
    http2?.closeIdle();
  });
  const looking = setInterval(() => front.refuseSlow(), LIMITS.connectionsCheckingInterval).unref();
  server.once("close", () => clearInterval(looking));

  await new Promise<void>((resolve, reject) => {
    // Also without effect after that: a failed accept, such as for want of descriptors, must not end the process.
    server.on("error", reject);
    server.listen({ port, host, backlog: LISTEN_BACKLOG }, () => resolve());
  });
  return {
    port: (server.address() as AddressInfo).port,
    announce: () => front.announce(),
    async drain() {
      front.announce();
      await quietTurn();
      const closed = front.drain(server);
      // The first bytes of connections that have just been accepted are read in the next turn.
      await nextTurn();
      prefaces.close();
      http2?.leave();
      await closed;
    },
    close() {
      tls?.close();
      server.close();
      server.closeAllConnections();
      prefaces.close();
      http2?.close();
    },
  };
}

/**
 * Limit of pipelined requests of a connection whose responses are not sent yet. Usual clients do not pipeline. Each request holds
 * some 9 KiB, also while its client does not read the response, and a connection must not run many at once: 40 connections of 95 requests
 * held others for four seconds, as 40 of 10 do for a quarter.
 */
const MAX_PIPELINED = 8;

class Front {
  readonly #services: EdgeServices;
  readonly #cors: ReturnType<typeof createCors>;
  readonly #connect: ReturnType<typeof connectHandler>;
  readonly #documents: Documents | undefined;
  readonly #console: Mounted | undefined;
  readonly #tls: TlsEntrance | undefined;
  readonly #grpc: GrpcOnHttp | undefined;
  readonly #stallMs: number;
  /**
   * Responses of a connection in order: those not sent yet, and the latest. Nothing else may be written to the connection
   * while one is in flight.
   */
  readonly #answering = new WeakMap<Socket, ServerResponse[]>();
  readonly #arrivals: Arrivals;
  readonly #modelTexts = new ModelTexts();
  readonly #pipelined = new PipelinedRequests();
  /** Connections of HTTP/2 that have begun a request in this event loop turn. */
  readonly #begunInTurn = new Set<Socket>();
  /** Listener at the end of each response. */
  readonly #ending: (this: ServerResponse) => void;
  #draining = false;
  /** Time of the last recorded HTTP/1.0 request. */
  #oldRecordedMs = -Infinity;

  constructor(
    services: EdgeServices,
    { corsOrigins, documents, console, tls, grpc, stallMs = WRITE_STALL_MS }: Omit<HttpOptions, "host" | "port">,
  ) {
    this.#services = services;
    this.#ending = function (): void {
      // Otherwise Node drops the rest of the body without the limits of the request's class.
      if (!this.req.complete) this.req.resume();
      if (this.writableLength > 0) limitUnread(this, stallMs);
    };
    this.#arrivals = new Arrivals(services.clock);
    this.#cors = createCors(corsOrigins);
    this.#connect = connectHandler(services);
    this.#documents = documents;
    this.#console = console;
    this.#tls = tls;
    this.#grpc = grpc;
    this.#stallMs = stallMs;
  }

  announce(): void {
    this.#draining = true;
  }

  async drain(server: Server): Promise<void> {
    this.#console?.drain();
    // That of HTTP also closes connections at once that have sent no request yet.
    const closed = new Promise<void>((resolve) => void NetServer.prototype.close.call(server, () => resolve()));
    // Keep-alive connections from before the drain become idle one by one.
    const sweep = setInterval(() => server.closeIdleConnections(), SWEEP_MS);
    await closed;
    clearInterval(sweep);
  }

  /** Whether the connection has as many requests without a sent response as it may. */
  isFull(socket: Socket): boolean {
    const answers = this.#answering.get(socket);
    if (answers === undefined || answers.length < MAX_PIPELINED) return false;
    return unfinished(answers).length >= MAX_PIPELINED;
  }

  handle(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    // The parser still delivers requests of the same read.
    if (socket.destroyed) return;
    // Node 24.11 drops the rest, which may be headers that a proxy has added: the caller's address, or its end user.
    if (request.rawHeaders.length > 2 * MAX_HEADERS)
      return this.refuseMalformed(Object.assign(new Error("too many headers"), { code: TOO_LARGE }), socket);
    const answers = this.#answering.get(socket) ?? this.#begin(socket);
    const isLast = this.#draining || answers.at(-1)?.shouldKeepAlive === false || this.#tls?.isRetired(socket) === true;
    while (answers[0]?.writableFinished === true) answers.shift();
    // The response to an earlier request of the same read may be finished already.
    const isPipelined = answers.length > 0 || this.#arrivals.isOfLatestRead(socket);
    if (isLast) response.setHeader("connection", "close");
    const exchange = new Exchange(request, response, this.#factsOf(request, socket));
    answers.push(response);
    response.once("prefinish", this.#ending);
    this.#arrivals.add(request);
    if (!isPipelined) return this.#answer(exchange);
    const leave = this.#pipelined.add(socket, () => this.#answer(exchange));
    response.once("close", leave);
  }

  /** The connections of HTTP/2. */
  http2(): Http2Sessions {
    const handle = (call: Http2Call): void => this.#handleHttp2(call);
    const { clock } = this.#services;
    return new Http2Sessions({ clock, tls: this.#tls, grpc: this.#grpc, stallMs: this.#stallMs, handle });
  }

  /** Requests of a connection after the first one of an event loop turn begin as pipelined ones. */
  #handleHttp2({ request, response, connection, authenticated }: Http2Call): void {
    const exchange = new Exchange(request, response, { ...this.#factsOf(request, connection), authenticated });
    if (this.#begunInTurn.has(connection)) {
      response.once(
        "close",
        this.#pipelined.add(connection, () => this.#answer(exchange)),
      );
      return;
    }
    if (this.#begunInTurn.size === 0) setImmediate(() => this.#begunInTurn.clear());
    this.#begunInTurn.add(connection);
    this.#answer(exchange);
  }

  /** Facts of the exchange of a request. */
  #factsOf(request: IncomingMessage, connection: Socket): ExchangeFacts {
    return {
      requestId: requestIdFrom(single(request.headers["x-request-id"])),
      clock: this.#services.clock,
      headers: isForPages(request.url!) ? this.#cors(request) : [],
      formatOf: (path) => formatOf(path, request.headers),
      connection,
    };
  }

  #answer(exchange: Exchange): void {
    this.#serve(exchange).catch((reason: unknown) => this.#refuse(exchange, Failure.from(reason)));
  }

  /** Begins the list of a connection's responses. */
  #begin(socket: Socket): ServerResponse[] {
    const answers: ServerResponse[] = [];
    this.#answering.set(socket, answers);
    socket.once("close", () => closeWaiting(answers));
    return answers;
  }

  async #serve(exchange: Exchange): Promise<void> {
    const { request, path } = exchange;
    if (isOld(request)) return this.#serveOld(exchange);
    refuseAmbiguous(request);
    const { route, allow } = findRoute(path, request.method ?? "", request.headers);
    if (route === undefined) {
      if (this.#console?.handles(path)) return this.#console.handle(request, exchange.response, exchange.requestId);
      const isOfApi = allow !== undefined || isForPages(`${path}/`);
      if (!isOfApi && this.#console?.handleMissing(request, exchange.response, exchange.requestId) === true) return;
      return this.#notFound(exchange, allow);
    }
    await this.#run(exchange, route);
  }

  /** Serves health checks over HTTP/1.0, which load balancers use by default, often without a Host header. Refuses the rest. */
  #serveOld(exchange: Exchange): void | Promise<void> {
    const { route } = findRoute(exchange.path, exchange.request.method ?? "");
    if (route?.name === "health" || route?.name === "ready") return this.#run(exchange, route);
    const failure = new Failure("invalid_request", "HTTP/1.1 is required.");
    const nowMs = this.#services.clock.monotonic();
    if (nowMs < this.#oldRecordedMs + OLD_RECORDED_EVERY_MS) return exchange.fail(failure);
    this.#oldRecordedMs = nowMs;
    throw failure;
  }

  async #run(exchange: Exchange, route: Route): Promise<void> {
    if (route.name === "health") return exchange.json(200, { status: "ok" });
    if (route.name === "ready")
      return exchange.json(this.#draining ? 503 : 200, { status: this.#draining ? "draining" : "ready" });
    if (route.name === "document") return this.#document(exchange);
    if (route.name === "format") exchange.format = route.format;
    if (route.name === "preflight") return void exchange.response.writeHead(204, exchange.headerList([], [])).end();
    if (route.name === "format" && route.operation.name === "fixed") {
      const { status, headers } = route.operation;
      return void exchange.response.writeHead(status, exchange.headerList(["content-length", "0"], headers)).end();
    }
    const isKept = route.name === "format" && route.operation.name === "kept";
    if (isKept && this.#services.responses === undefined) return this.#notFound(exchange, undefined);
    const { request, query, connection } = exchange;
    const authorization = authorizationOf(request.headers, query);
    const certificate = this.#tls?.certificateOf(connection);
    if (authorization === undefined && certificate !== undefined) refuseForeignPage(request);
    const principal = await this.#services.authenticate({ authorization, certificate });
    this.#tls?.authenticated(connection);
    exchange.authenticated?.();
    exchange.limitsKnown = () => this.#services.limitsOf(principal);
    if (route.name === "connect") return this.#connect(exchange, principal);
    await this.#operate(exchange, principal, route.operation);
  }

  /** Runs an operation of a format that needs a key. */
  #operate(exchange: Exchange, principal: KeyPrincipal, operation: Operation): Promise<void> {
    if (operation.name === "completion") return completion(this.#services, exchange, { ...operation, principal });
    if (operation.name === "embedding")
      return embeddings(this.#services, exchange, { principal, read: operation.read });
    if (operation.name === "count") return tokenCount(this.#services, exchange, { principal, read: operation.read });
    if (operation.name === "explain") return explanation(this.#services, exchange, { principal, read: operation.read });
    if (operation.name === "kept") return keptAnswers(this.#services, exchange, { principal, find: operation.find });
    return this.#listModels(exchange, principal, operation);
  }

  async #listModels(exchange: Exchange, principal: KeyPrincipal, operation: Operation): Promise<void> {
    if (operation.name === "model") {
      const model = await this.#services.models.get(operation.id, callerOf(exchange, principal));
      exchange.json(200, operation.write(model));
    } else if (operation.name === "models") {
      const write = (list: readonly Model[]): string => this.#modelTexts.of(list, operation.write, exchange.query);
      await modelList(this.#services, exchange, { principal, write });
    }
  }

  /** Answers a request that Node's parser refuses as an OpenAI error, and closes the connection. */
  refuseMalformed(error: NodeJS.ErrnoException, socket: Socket): void {
    const answer = this.#answering.get(socket)?.at(-1);
    // Also a request that was refused before its whole body arrived.
    const isAnswered = answer?.headersSent === true && (!answer.writableFinished || !answer.req.complete);
    if (!socket.writable || error.code === "ECONNRESET" || isAnswered) return void socket.destroy();
    if (error.code === "HPE_PAUSED_H2_UPGRADE") return void socket.end(goAwayFromHttp1(), () => socket.destroySoon());
    const [status, what] = describeMalformed(error);
    const body = JSON.stringify({ error: { message: what, type: "invalid_request_error", param: null, code: null } });
    socket.end(
      `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
      () => socket.destroySoon(),
    );
  }

  /** Ends requests whose bodies arrive too slowly with 408. */
  refuseSlow(): void {
    for (const socket of this.#arrivals.takeSlow())
      this.refuseMalformed(Object.assign(new Error("too slow"), { code: TOO_LATE }), socket);
  }

  #document(exchange: Exchange): void {
    const file = this.#documents?.find(exchange.path);
    if (file === undefined) this.#notFound(exchange, undefined);
    else sendDocument(exchange, file, this.#stallMs);
  }

  #notFound(exchange: Exchange, allow: string | undefined): void {
    const { request, path } = exchange;
    const what =
      allow === undefined
        ? `There is nothing at ${path.slice(0, 256)}.${adviseOn(path)}`
        : `${request.method} is not served at ${path}; ${allow} is.`;
    this.#refuse(exchange, new Failure("not_found", what), allow === undefined ? [] : [["allow", allow]]);
  }

  #refuse(exchange: Exchange, failure: Failure, headers: [string, string][] = []): void {
    this.#services.refused({
      entrance: isConnect(exchange.path) ? "connect" : "http",
      requestId: exchange.requestId,
      target: exchange.path.slice(0, 256),
      failure,
    });
    const method = exchange.request.method ?? "";
    const isOfConsole = method === "POST" && this.#console?.handles(exchange.path) === true;
    const speaksConnect = isOfConsole || findRoute(exchange.path, method).route?.name === "connect";
    if (speaksConnect) writeConnectError(exchange, failure);
    else exchange.fail(failure, headers);
  }
}

function unfinished(answers: readonly ServerResponse[]): readonly ServerResponse[] {
  return answers.filter(({ writableFinished }) => !writableFinished);
}

/**
 * Closes the responses of a closed connection that wait for those before them. Node closes the one that is being sent; the
 * others only since version 26, and not after a refused request or CONNECT. Calls end when their responses close.
 */
function closeWaiting(answers: readonly ServerResponse[]): void {
  const waiting = answers.filter(({ socket, closed }) => socket === null && !closed);
  for (const answer of waiting) answer.destroy();
  process.nextTick(() => {
    for (const answer of waiting) if (!answer.closed) answer.emit("close");
  });
}

/** Whether the request is HTTP/1.0 or older. */
function isOld({ httpVersionMajor, httpVersionMinor }: IncomingMessage): boolean {
  return httpVersionMajor < 1 || (httpVersionMajor === 1 && httpVersionMinor < 1);
}

/** Limit of parameters of a query, of which routes have few: the query is parsed before the caller's key is known. */
const MAX_PARAMETERS = 100;

/** Headers that a request has once. */
const ONCE = ["Host", "Authorization", "Parley-End-User", "Parley-Session-Id"] as const;
const ONCE_LENGTHS: ReadonlySet<number> = new Set(ONCE.map(({ length }) => length));

/**
 * Refuses duplicate headers that identify the caller, its end user or its session. Node takes the first or joins them,
 * proxies may have taken the second, and one that adds the end user beside a caller's own would give each request an end
 * user of its own. Refuses a host and a query that would take milliseconds to parse, too.
 */
function refuseAmbiguous({ rawHeaders, url, headers }: IncomingMessage): void {
  const counts = new Map<string, number>();
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const { length } = rawHeaders[at]!;
    if (!ONCE_LENGTHS.has(length)) continue;
    const name = rawHeaders[at]!.toLowerCase();
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  if (!counts.has("host")) throw new Failure("invalid_request", "The Host header is missing.");
  const twice = ONCE.find((name) => counts.get(name.toLowerCase())! > 1);
  if (twice !== undefined) throw new Failure("invalid_request", `The ${twice} header is given twice.`);
  // Later URL parsing would throw.
  if (headers.host!.length > MAX_HOST_CHARS || !URL.canParse(`http://${headers.host}`))
    throw new Failure("invalid_request", "The Host header is not a host.");
  if (url!.split("&", MAX_PARAMETERS + 1).length > MAX_PARAMETERS)
    throw new Failure("invalid_request", `The query has more than ${MAX_PARAMETERS} parameters.`);
  if (url!.startsWith("/")) return;
  if (absoluteForm(url!)?.host !== headers.host)
    throw new Failure("invalid_request", "The request's address and its Host header differ.");
}

/**
 * Refuses a request without a key that a page of another origin may have made a browser send: browsers add their certificate by
 * themselves, and send forms without asking. Clients other than browsers send neither header. Throws `permission_denied`.
 */
function refuseForeignPage({ headers }: IncomingMessage): void {
  const { host, origin, "sec-fetch-site": site } = headers;
  const isOwn =
    site === undefined ? origin === undefined || origin === `https://${host}` : /^(same-origin|none)$/.test(site);
  if (isOwn) return;
  throw new Failure(
    "permission_denied",
    "A client certificate stands for no key in requests of other origins' pages. Send an API key.",
  );
}

/** SETTINGS, then GOAWAY with HTTP_1_1_REQUIRED (0xd) and a text that gRPC clients show (RFC 9113, 6.8). */
function goAwayFromHttp1(): Buffer {
  const text = Buffer.from("This port serves HTTP/1.1. gRPC has a port of its own, 50051 by default (grpc.listen).");
  const frame = Buffer.alloc(9 + 17);
  // An empty SETTINGS: length 0, type 4.
  frame[3] = 4;
  // GOAWAY: length, type 7, stream 0; the last stream is 0.
  frame.writeUIntBE(8 + text.length, 9, 3);
  frame[12] = 7;
  frame.writeUInt32BE(0xd, 22);
  return Buffer.concat([frame, text]);
}

function describeMalformed(error: NodeJS.ErrnoException): readonly [status: string, what: string] {
  if (error.code === TOO_LARGE) {
    return ["431 Request Header Fields Too Large", "The request's headers are too large."];
  }
  if (error.code === TOO_LATE) return ["408 Request Timeout", "The request did not arrive in time."];
  return ["400 Bad Request", "The request is not valid HTTP."];
}

function single(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}
