import { randomUUID } from "node:crypto";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Http2Session, IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { Clock } from "../../core/clock.ts";
import type { ClientCertificate, TlsEntrance } from "../../net/tls-entrance.ts";
import { type GuardedStream, GuardedConnection, LOOK_MS, type StreamFacts } from "./guarded-connection.ts";
import { keepAlive } from "./keepalive.ts";
import { PendingCalls } from "./pending-calls.ts";
import { StrangerTurns } from "./stranger-turns.ts";

/** A vanished client is detected within 2.5 minutes. */
const KEEPALIVE = { everyMs: 120_000, answerMs: 20_000 };

/** Diagnostics channel for new streams of all HTTP/2 servers of this process. */
const STREAM_BEGINS = "http2.server.stream.start";

/**
 * Mark of a connection's socket, which the socket of its HTTP/2 session shows too. Addresses are no mark: two connections that a client
 * opens to different addresses of a listener may have the same one, and the same port, at its end.
 */
const ID = Symbol("connection");

interface MarkedSocket extends Socket {
  [ID]?: string;
}

interface StreamBegins {
  readonly stream: ServerHttp2Stream;
  readonly headers: IncomingHttpHeaders;
}

export interface GuardOptions {
  readonly clock: Clock;
  /** Age at which a connection gets GOAWAY, ±10 %. Default: none. */
  readonly maxAgeMs?: number;
  /** Time without a stream after which a connection gets GOAWAY. Default: none. */
  readonly maxIdleMs?: number;
  /** TLS of the connections. Default: none. */
  readonly tls?: TlsEntrance | undefined;
  /** Guards a stream that has just begun. */
  readonly guardStream: (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, facts: StreamFacts) => GuardedStream;
}

/**
 * Closes abusive connections. nghttp2 ends most floods of frames; it has no limit for WINDOW_UPDATE and no time limits. Its limit of
 * resets is lifted (`RESETS`), because it counts those of calls that have run for minutes, too.
 */
export class ConnectionGuard {
  readonly #options: GuardOptions;
  /** By their IDs. */
  readonly #connections = new Map<string, GuardedConnection>();
  readonly #ofSession = new WeakMap<Http2Session, GuardedConnection>();
  #cancelLook: (() => void) | undefined;
  #leaving = false;
  readonly #pending = new PendingCalls<GuardedConnection>();
  readonly #turns = new StrangerTurns();
  readonly #begins = (message: unknown): void => this.#addStream(message as StreamBegins);

  constructor(options: GuardOptions) {
    this.#options = options;
    options.tls?.onTrustChange(() => this.#leaveRetired());
    subscribe(STREAM_BEGINS, this.#begins);
  }

  /** Guards a connection until it closes. */
  add(socket: Socket): void {
    const id = randomUUID();
    const { clock, maxAgeMs = Infinity, maxIdleMs = Infinity } = this.#options;
    const nowMs = clock.monotonic();
    const leavesMs = nowMs + maxAgeMs * (0.9 + Math.random() * 0.2);
    const connection = new GuardedConnection(socket, { id, nowMs, leavesMs, maxIdleMs });
    this.#connections.set(id, connection);
    (socket as MarkedSocket)[ID] = id;
    this.#turns.add(socket);
    socket.once("close", () => {
      this.#connections.delete(id);
      this.#turns.remove(socket);
    });
    if (this.#leaving) connection.leave();
    if (this.#cancelLook === undefined) this.#lookLater();
  }

  /** The certificate of a connection's client, by the connection's ID, which calls have in CONNECTION_HEADER. */
  certificateOf(id: string): ClientCertificate | undefined {
    const connection = this.#connections.get(id);
    return connection && this.#options.tls?.certificateOf(connection.socket);
  }

  /** Sends GOAWAY on all connections, also on later ones, whose handshake was not finished: with their first stream. */
  leave(): void {
    this.#leaving = true;
    for (const connection of this.#connections.values()) connection.leave();
  }

  /** Sends GOAWAY on connections whose client is no longer accepted, see `TlsEntrance.isRetired`. */
  #leaveRetired(): void {
    for (const connection of this.#connections.values()) if (this.#isRetired(connection)) connection.leave();
  }

  #isRetired({ socket }: GuardedConnection): boolean {
    return this.#options.tls?.isRetired(socket) === true;
  }

  /** Closes connections without a stream, and those after GOAWAY without a call in flight that has a valid key. */
  closeIdle(): void {
    for (const connection of this.#connections.values())
      if (connection.isIdle || connection.isLeft) connection.socket.destroy();
  }

  close(): void {
    unsubscribe(STREAM_BEGINS, this.#begins);
    this.#cancelLook?.();
    for (const { socket } of this.#connections.values()) socket.destroy();
  }

  /** Connects a session with the connection that it was made of; undefined for one of another server. Default: with its first stream. */
  begin(session: Http2Session): GuardedConnection | undefined {
    const connection = this.#connections.get((session.socket as MarkedSocket)[ID] ?? "");
    if (connection === undefined) return undefined;
    this.#ofSession.set(session, connection);
    connection.session = session;
    keepAlive(session, KEEPALIVE);
    return connection;
  }

  #addStream({ stream, headers }: StreamBegins): void {
    const { session } = stream;
    if (session === undefined) return;
    const connection = this.#ofSession.get(session) ?? this.begin(session);
    if (connection === undefined) return;
    const { clock, tls, guardStream } = this.#options;
    const { id: connectionId, socket } = connection;
    this.#turns.began(socket);
    const certificate = tls?.certificateOf(socket);
    const authenticated = (): void => tls?.authenticated(socket);
    connection.add(stream, {
      clock,
      pending: this.#pending,
      known: () => this.#turns.remove(socket),
      guard: (calls) => guardStream(stream, headers, { ...calls, socket, certificate, authenticated, connectionId }),
    });
    if (this.#isRetired(connection)) connection.leave();
  }

  #lookLater(): void {
    const { clock } = this.#options;
    this.#cancelLook = clock.after(LOOK_MS, () => {
      const nowMs = clock.monotonic();
      for (const connection of this.#connections.values()) connection.look(nowMs);
      this.#cancelLook = undefined;
      if (this.#connections.size > 0) this.#lookLater();
    });
  }
}
