import { constants, createServer, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "../../core/clock.ts";
import type { TlsEntrance } from "../../net/tls-entrance.ts";
import { ConnectionGuard } from "../http2/connection-guard.ts";
import { MAX_STREAMS } from "../http2/guarded-connection.ts";
import { RESETS, SESSION_MB } from "../http2/session-options.ts";
import { type GrpcOnHttp, isGrpc } from "../http2/shared-port.ts";
import { declaredBytes } from "./body.ts";
import { messagesOf } from "./http2-message.ts";
import { HttpStreamGuard } from "./http2-stream-guard.ts";

/** A request of HTTP/2 and its response, as handlers of HTTP/1.1 take them. */
export interface Http2Call {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly connection: Socket;
  /** Called when the caller is authenticated. */
  readonly authenticated: () => void;
}

export interface Http2Options {
  readonly clock: Clock;
  readonly tls: TlsEntrance | undefined;
  /** Time after which an unread response closes its stream, in milliseconds. */
  readonly stallMs: number;
  /** gRPC on the same connections. Default: none. */
  readonly grpc?: GrpcOnHttp | undefined;
  readonly handle: (call: Http2Call) => void;
}

/** Limits of a request's headers, as over HTTP/1.1, and with its four pseudo-headers. */
const HEADERS = { bytes: 16 * 1024, pairs: 104 } as const;

/** Time without a request after which a connection closes, as over HTTP/1.1. */
const MAX_IDLE_MS = 65_000;

/** Answer of a gRPC call, which has a status of its own. */
const NO_GRPC = "This port serves HTTP. gRPC has a port of its own, 50051 by default (grpc.listen).";
const UNIMPLEMENTED = 12;

/** The connections of HTTP/2 of the HTTP server, and their guard. */
export class Http2Sessions {
  readonly #options: Http2Options;
  readonly #server = createServer({
    ...RESETS,
    maxSessionMemory: SESSION_MB,
    // nghttp2 resets streams with more; until the client knows the SETTINGS, `#begin` does.
    maxHeaderListPairs: HEADERS.pairs,
    // The guard raises it.
    settings: { maxConcurrentStreams: MAX_STREAMS.first, maxHeaderListSize: HEADERS.bytes },
  });
  readonly #guard: ConnectionGuard;
  readonly #guards = new WeakMap<ServerHttp2Stream, HttpStreamGuard>();

  constructor(options: Http2Options) {
    this.#options = options;
    const { clock, tls, stallMs, grpc } = options;
    this.#guard = new ConnectionGuard({
      clock,
      ...(grpc !== undefined && { maxAgeMs: grpc.maxConnectionAgeMs }),
      maxIdleMs: MAX_IDLE_MS,
      tls,
      guardStream: (stream, headers, facts) => {
        if (grpc !== undefined && isGrpc(headers)) return grpc.guardStream(stream, headers, facts);
        const { took, waits, socket } = facts;
        const guard = new HttpStreamGuard(stream, { clock, stallMs, took, waits, socket });
        this.#guards.set(stream, guard);
        return guard;
      },
    });
    grpc?.guardedBy(this.#guard);
    this.#server.on("session", (session) => void this.#guard.begin(session));
    this.#server.on("stream", (stream, headers, ...[, rawHeaders]) => this.#begin(stream, headers, rawHeaders));
  }

  /** Takes a connection whose client speaks HTTP/2. */
  open(socket: Socket): void {
    // Sockets of a server of HTTP/1.1 stay open when their client has closed: it would not be noticed before the next write.
    socket.allowHalfOpen = false;
    this.#guard.add(socket);
    this.#server.emit("connection", socket);
  }

  /** Closes connections without a request. */
  closeIdle(): void {
    this.#guard.closeIdle();
  }

  /** Sends GOAWAY on all connections: with their next request, or at once to those without. */
  leave(): void {
    this.#guard.leave();
  }

  close(): void {
    this.#guard.close();
  }

  #begin(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, rawHeaders: readonly string[]): void {
    const guard = this.#guards.get(stream);
    if (guard === undefined) return this.#options.grpc?.serve(stream, headers);
    if (stream.closed || stream.destroyed) return;
    if (isGrpc(headers)) return refuseGrpc(stream);
    if (bytesOf(rawHeaders) > HEADERS.bytes) return refuse(stream, 431, "The request's headers are too large.");
    if (headers[":method"] === "CONNECT") return refuse(stream, 405, "CONNECT is not served.");
    const connection = guard.socket;
    const { request, response } = messagesOf(stream, { headers, rawHeaders, connection });
    const refuseSlow = (): void => refuse(stream, 408, "The request did not arrive in time.");
    guard.begin({ body: request, declaredBytes: declaredBytes(request), refuseSlow });
    this.#options.handle({ request, response, connection, authenticated: () => guard.authenticated() });
  }
}

function bytesOf(rawHeaders: readonly string[]): number {
  let bytes = 0;
  for (const text of rawHeaders) bytes += text.length;
  return bytes;
}

/** Answers before or in place of a handler, and closes the stream. */
function refuse(stream: ServerHttp2Stream, status: number, message: string): void {
  if (stream.closed || stream.destroyed) return;
  // The handler has begun to answer.
  if (stream.headersSent) return stream.close(constants.NGHTTP2_CANCEL);
  const body = JSON.stringify({ error: { message, type: "invalid_request_error", param: null, code: null } });
  stream.respond({ ":status": status, "content-type": "application/json", "content-length": body.length });
  // It has ended already for HEAD.
  stream.end(stream.writableEnded ? undefined : body, () => stream.close(constants.NGHTTP2_NO_ERROR));
}

function refuseGrpc(stream: ServerHttp2Stream): void {
  const status = { "grpc-status": UNIMPLEMENTED, "grpc-message": encodeURI(NO_GRPC) };
  stream.respond({ ":status": 200, "content-type": "application/grpc", ...status }, { endStream: true });
}
