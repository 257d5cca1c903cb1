import { type ClientHttp2Session, connect, type OutgoingHttpHeaders, type Settings } from "node:http2";
import type { TLSSocket } from "node:tls";
import { connectionError, type ResponseListener, type WireRequest } from "./connection.ts";
import type { ConnectionLimits } from "./connections.ts";
import type { Dialer } from "./dialer.ts";
import { Http2Exchange } from "./http2-exchange.ts";
import { ResponseError } from "./response-error.ts";
import { SMALL, SmallPieces, TINY } from "./small-pieces.ts";
import { TlsRecords } from "./tls-records.ts";
import { NO_HTTP2 } from "./transport-failure.ts";

/** Receives the events of a connection. */
interface Http2ConnectionOwner {
  /**
   * Time limit in ms for DNS, TCP, TLS and the first settings of the server together; also the silence of a connection with
   * requests in flight after which the server gets a ping, and the time it has to answer that.
   */
  readonly connectMs: number;
  /** One of its requests has ended. */
  onRoom(connection: Http2Connection): void;
  send(request: WireRequest<OutgoingHttpHeaders>, listener: ResponseListener): void;
  /** Number of concurrent streams that this origin's servers allowed last. Set by connections. */
  usualStreams: number;
  /** The connection is closed. Called once. */
  onClosed(connection: Http2Connection): void;
}

/** Limit of concurrent requests per connection, because the loss of a connection ends them all. Servers may allow fewer. */
export const MAX_STREAMS = 64;
/** Flow-control windows: bytes that a server may send beyond those read, of one response and of all. */
const STREAM_WINDOW_BYTES = 256 * 1024;
const CONNECTION_WINDOW_BYTES = MAX_STREAMS * STREAM_WINDOW_BYTES;
/** Memory in MB beyond which Node refuses further requests on a connection. */
const MAX_SESSION_MEMORY_MB = 64;

/** Limit of GOAWAY, ALTSVC and ORIGIN frames of a connection. Servers send one or two of each. */
const MAX_NOTICES = 16;
/** Allowance of bytes per piece of a body beyond its content. The headers of its frame and TLS record are about 30. */
const PIECE_BYTES = 64;
/** Allowance of bytes per response beyond the read body: its headers, and waiting or dropped bytes of the body, at most a window. */
const REQUEST_BYTES = 64 * 1024 + STREAM_WINDOW_BYTES;
/** Allowance of bytes for all other frames of a connection, at its start and in each second: some 20,000 frames. */
const FRAME_BYTES = 256 * 1024;
/**
 * Largest allowance that has not been used: that of as many responses as there are at once, whose unread and dropped bytes are no more
 * than the connection's window. Otherwise a server could save it up in thousands of responses, and then send frames for as long.
 */
const MAX_ALLOWANCE = MAX_STREAMS * REQUEST_BYTES + FRAME_BYTES;

/** One HTTP/2 connection to a provider, over TLS. It connects at once and carries several requests at a time. */
export class Http2Connection {
  readonly pool: string;
  /** Time of the monotonic clock at which its last request ended. */
  freeAtMs = performance.now();
  readonly #owner: Http2ConnectionOwner;
  readonly #socket: TLSSocket;
  readonly #openedAtMs = performance.now();
  readonly #exchanges = new Set<Http2Exchange>();
  #session: ClientHttp2Session | undefined;
  readonly #connecting: NodeJS.Timeout;
  /** Undefined until the server's first settings; until then requests wait. */
  #maxStreams: number | undefined;
  #requests = 0;
  /** Whether the server takes no further request, or the connection is closed. */
  #isLeaving = false;
  #isClosed = false;
  #pingedAtMs: number | undefined;
  #heardAtMs = performance.now();
  #heardBytes = 0;
  readonly #tiny = new SmallPieces(TINY);
  readonly #small = new SmallPieces(SMALL);
  #notices = 0;
  /** Largest number of bytes that an honest server has sent. Bounds frames such as WINDOW_UPDATE and PING, which nothing else counts. */
  #mostBytes = FRAME_BYTES;
  #sweptAtMs = this.#openedAtMs;
  /** Undefined before the handshake is finished. */
  #records: TlsRecords | undefined;

  constructor(dialer: Dialer, pool: string, owner: Http2ConnectionOwner) {
    this.pool = pool;
    this.#owner = owner;
    // Only `https:` has HTTP/2.
    this.#socket = dialer.open() as TLSSocket;
    this.#connecting = setTimeout(
      () => this.#break(connectionError("CONNECT_TIMEOUT", `no connection within ${owner.connectMs} ms`)),
      owner.connectMs,
    );
    this.#socket
      .once(dialer.readyEvent, () => this.#begin())
      .on("error", (error: Error) => this.#break(error))
      .once("close", () => this.#break(connectionError("CLOSED", "the connection is closed")));
  }

  get isFree(): boolean {
    return this.#exchanges.size === 0;
  }

  /** Whether it takes one more request. */
  hasRoom({ maxAgeMs, maxRequests }: ConnectionLimits): boolean {
    // A failed session is destroyed before its event.
    if (this.#isLeaving || this.#session?.destroyed === true || this.#requests >= maxRequests) return false;
    if (performance.now() - this.#openedAtMs > maxAgeMs) return false;
    return this.#exchanges.size < (this.#maxStreams ?? this.#owner.usualStreams);
  }

  send(request: WireRequest<OutgoingHttpHeaders>, listener: ResponseListener): void {
    const exchange = new Http2Exchange(request, listener, this);
    listener.connection = exchange;
    this.#requests += 1;
    this.#mostBytes += REQUEST_BYTES;
    this.#exchanges.add(exchange);
    if (this.#maxStreams !== undefined) exchange.start(this.#session!);
  }

  /** Ends silent responses, and the connection if its server no longer answers. */
  sweep(nowMs: number): void {
    for (const exchange of this.#exchanges) {
      exchange.failIfSilent(nowMs);
      exchange.collect();
    }
    const elapsedMs = nowMs - this.#sweptAtMs;
    this.#sweptAtMs = nowMs;
    try {
      this.#records?.check(elapsedMs);
    } catch (error) {
      return this.#break(error as ResponseError);
    }
    const heardBytes = this.#socket.bytesRead;
    if (heardBytes !== this.#heardBytes) {
      this.#heardBytes = heardBytes;
      this.#heardAtMs = nowMs;
      this.#pingedAtMs = undefined;
    }
    this.#mostBytes += (FRAME_BYTES * elapsedMs) / 1000;
    this.#mostBytes = Math.min(this.#mostBytes, heardBytes + MAX_ALLOWANCE);
    if (heardBytes > this.#mostBytes)
      return this.#break(new ResponseError("The frames of the connection are more than its answers account for."));
    if (this.#maxStreams === undefined || this.isFree) return;
    if (this.#pingedAtMs === undefined && nowMs - this.#heardAtMs > this.#owner.connectMs) {
      this.#pingedAtMs = nowMs;
      this.#session?.ping(() => undefined);
    } else if (this.#pingedAtMs !== undefined && nowMs - this.#pingedAtMs > this.#owner.connectMs)
      this.#break(connectionError("CLOSED", "the server does not answer a ping"));
  }

  /** Closes the connection. Requests in flight fail. */
  destroy(): void {
    this.#break(connectionError("CLOSED", "the connection is closed"));
  }

  onEnded(exchange: Http2Exchange): void {
    this.#exchanges.delete(exchange);
    this.freeAtMs = performance.now();
    if (this.#isClosed) return;
    if (this.#isLeaving && this.isFree) this.destroy();
    else this.#owner.onRoom(this);
  }

  onPiece(bytes: number): void {
    this.#mostBytes += bytes + PIECE_BYTES;
    try {
      this.#tiny.add(bytes);
      this.#small.add(bytes);
    } catch (error) {
      this.#break(error as ResponseError);
    }
  }

  onAbuse(error: ResponseError): void {
    this.#break(error);
  }

  resend(request: WireRequest<OutgoingHttpHeaders>, listener: ResponseListener): void {
    this.#owner.send(request, listener);
  }

  #begin(): void {
    if (this.#socket.alpnProtocol !== "h2")
      return this.#break(connectionError(NO_HTTP2, "the server does not offer HTTP/2"));
    this.#records = TlsRecords.of(this.#socket);
    const session = connect(`https://${this.#socket.servername || "unnamed.invalid"}`, {
      createConnection: () => this.#socket,
      maxSessionMemory: MAX_SESSION_MEMORY_MB,
      settings: { enablePush: false, initialWindowSize: STREAM_WINDOW_BYTES },
    });
    this.#session = session;
    session
      .once("connect", () => session.setLocalWindowSize(CONNECTION_WINDOW_BYTES))
      .on("remoteSettings", (settings: Settings) => this.#onSettings(settings.maxConcurrentStreams ?? MAX_STREAMS))
      .on("goaway", () => this.#leave())
      .on("altsvc", () => this.#notice())
      .on("origin", () => this.#notice())
      .on("error", (error: Error) => this.#break(error))
      .once("close", () => this.#break(connectionError("CLOSED", "the server closed the connection")));
  }

  #onSettings(maxConcurrentStreams: number): void {
    const isFirst = this.#maxStreams === undefined;
    this.#maxStreams = Math.min(maxConcurrentStreams, MAX_STREAMS);
    if (!isFirst) return this.#owner.onRoom(this);
    clearTimeout(this.#connecting);
    if (this.#maxStreams === 0) return this.#break(connectionError("NO_STREAMS", "the server allows no requests"));
    this.#owner.usualStreams = this.#maxStreams;
    const waiting = [...this.#exchanges];
    for (const exchange of waiting.slice(0, this.#maxStreams)) exchange.start(this.#session!);
    // The server allows fewer streams than requests have waited; the rest need other connections.
    for (const exchange of waiting.slice(this.#maxStreams)) {
      this.#exchanges.delete(exchange);
      this.#owner.send(exchange.request, exchange.listener);
    }
  }

  /** Counts a GOAWAY, ALTSVC or ORIGIN frame, which costs as much as a piece of a body. */
  #notice(): void {
    if (++this.#notices > MAX_NOTICES)
      this.#break(new ResponseError(`There are more than ${MAX_NOTICES} GOAWAY, ALTSVC and ORIGIN frames.`));
  }

  /** Notes that the server takes no further request. Requests in flight end on this connection. */
  #leave(): void {
    this.#notice();
    this.#isLeaving = true;
    for (const exchange of this.#exchanges) exchange.collect();
    if (this.isFree) this.destroy();
  }

  #break(error: Error): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#isLeaving = true;
    clearTimeout(this.#connecting);
    for (const exchange of this.#exchanges) exchange.fail(error);
    this.#session?.destroy();
    this.#socket.destroy();
    this.#owner.onClosed(this);
  }
}
