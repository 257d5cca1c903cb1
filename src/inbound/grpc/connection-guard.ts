import { randomUUID } from "node:crypto";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Http2Session, IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { ClientCertificate, TlsEntrance } from "../../net/tls-entrance.ts";
import { keepAlive } from "./keepalive.ts";
import { PendingCalls } from "./pending-calls.ts";
import { type GuardServices, StreamGuard, type StreamGuardOptions } from "./stream-guard.ts";

/** Interval of the checks of each connection. */
const LOOK_MS = 200;
/** Time limit for the client's preface and SETTINGS. */
const HELLO_MS = 10_000;
/** Bytes of the preface and the shortest SETTINGS. */
const HELLO_BYTES = 33;
/** Time that a client may keep a closed connection open. */
const FAREWELL_MS = 5000;

/**
 * Allowance for bytes beside request bodies (headers, control frames): a burst, a rate, and more for each stream and for bytes
 * sent to the client, which it acknowledges.
 */
const OVERHEAD = { atOnce: 512 * 1024, perMs: 256, perStream: 1024, perByteSent: 0.5, perByteOfBody: 1 / 64 } as const;

/** Longest time for which a check grants an allowance: an event loop that is late because of a flood must not pay for it. */
const MAX_EARNED_MS = 2 * LOOK_MS;

/**
 * Allowance for small pieces of bodies (DATA frames): a burst, a rate, and the first ones of each stream. A piece of less than `bytes`
 * counts by the part that it lacks: it costs as much time as a large one, and 6,000 of them fit into one read of the socket.
 */
const SMALL_PIECES = { bytes: 256, atOnce: 1_000, perMs: 0.5, perStream: 2 } as const;

/**
 * Allowance for calls that are reset right after their start: a burst, a rate, and one for each other call with a valid key, up to
 * `earned`: a front has many callers, whose resets look quick when the event loop was late.
 */
const QUICK_RESETS = { atOnce: 200, perMs: 0.05, earned: 1_000 } as const;

/**
 * Limits of streams of a connection (SETTINGS_MAX_CONCURRENT_STREAMS): at its start, and when IN_USE calls with a valid key are in
 * flight. nghttp2 ends further streams before they cost anything; clients keep further calls until the SETTINGS arrive. RFC 9113
 * recommends at least 100, and most clients assume it before the first SETTINGS.
 */
export const MAX_STREAMS = { first: 100, inUse: 1000 } as const;
const IN_USE = MAX_STREAMS.first / 2;

/**
 * Streams that a connection may begin in one event loop turn, as a multiple of its limit: a client that resets streams in the write
 * that begins them, without an error, exceeds it without ever having more than one open.
 */
const BEGUN_IN_TURN = 3;

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
  /** Age at which a connection gets GOAWAY, ±10 %. */
  readonly maxAgeMs: number;
  /** Limit of a request message. */
  readonly maxReceiveBytes: number;
  /** TLS of the connections. Default: none. */
  readonly tls?: TlsEntrance | undefined;
}

/**
 * Closes abusive connections. nghttp2 ends most floods of frames; it has no limit for WINDOW_UPDATE and no time limits. Its limit of
 * resets is lifted (`RESETS`), because it counts those of calls that have run for minutes, too.
 */
export class ConnectionGuard {
  readonly #services: GuardServices;
  readonly #maxAgeMs: number;
  readonly #maxReceiveBytes: number;
  readonly #tls: TlsEntrance | undefined;
  /** By their IDs. */
  readonly #connections = new Map<string, Connection>();
  readonly #ofSession = new WeakMap<Http2Session, Connection>();
  #cancelLook: (() => void) | undefined;
  readonly #pending = new PendingCalls<Connection>();
  readonly #begins = (message: unknown): void => this.#addStream(message as StreamBegins);

  constructor(services: GuardServices, { maxAgeMs, maxReceiveBytes, tls }: GuardOptions) {
    this.#services = services;
    this.#maxAgeMs = maxAgeMs;
    this.#maxReceiveBytes = maxReceiveBytes;
    this.#tls = tls;
    tls?.onTrustChange(() => this.#leaveRetired());
    subscribe(STREAM_BEGINS, this.#begins);
  }

  /** Guards a connection until it closes. */
  add(socket: Socket): void {
    const id = randomUUID();
    const nowMs = this.#services.clock.monotonic();
    const leavesMs = nowMs + this.#maxAgeMs * (0.9 + Math.random() * 0.2);
    const connection = new Connection(socket, { id, nowMs, leavesMs });
    this.#connections.set(id, connection);
    (socket as MarkedSocket)[ID] = id;
    socket.once("close", () => this.#connections.delete(id));
    if (this.#cancelLook === undefined) this.#lookLater();
  }

  /** The certificate of a connection's client, by the connection's ID, which calls have in CONNECTION_HEADER. */
  certificateOf(id: string): ClientCertificate | undefined {
    const connection = this.#connections.get(id);
    return connection && this.#tls?.certificateOf(connection.socket);
  }

  /** Sends GOAWAY on all connections. */
  leave(): void {
    for (const connection of this.#connections.values()) connection.leave();
  }

  /** Sends GOAWAY on connections whose client was verified by authorities that have changed. */
  #leaveRetired(): void {
    for (const connection of this.#connections.values())
      if (this.#tls?.isRetired(connection.socket) === true) connection.leave();
  }

  /** Closes connections without a stream. */
  closeIdle(): void {
    for (const connection of this.#connections.values()) if (connection.isIdle) connection.socket.destroy();
  }

  close(): void {
    unsubscribe(STREAM_BEGINS, this.#begins);
    this.#cancelLook?.();
    for (const { socket } of this.#connections.values()) socket.destroy();
  }

  #addStream({ stream, headers }: StreamBegins): void {
    const { session } = stream;
    if (session === undefined) return;
    let connection = this.#ofSession.get(session);
    if (connection === undefined) {
      connection = this.#connections.get((session.socket as MarkedSocket)[ID] ?? "");
      // A connection of another server.
      if (connection === undefined) return;
      this.#ofSession.set(session, connection);
      connection.session = session;
      keepAlive(session, KEEPALIVE);
    }
    connection.add(stream, headers, {
      services: this.#services,
      pending: this.#pending,
      maxReceiveBytes: this.#maxReceiveBytes,
      certificate: this.#tls?.certificateOf(connection.socket),
      authenticated: () => this.#tls?.authenticated(connection.socket),
      connectionId: connection.id,
    });
  }

  #lookLater(): void {
    this.#cancelLook = this.#services.clock.after(LOOK_MS, () => {
      const nowMs = this.#services.clock.monotonic();
      for (const connection of this.#connections.values()) connection.look(nowMs);
      this.#cancelLook = undefined;
      if (this.#connections.size > 0) this.#lookLater();
    });
  }
}

class Connection {
  readonly id: string;
  readonly socket: Socket;
  /** Unknown before the first stream. */
  session: Http2Session | undefined;
  readonly #leavesMs: number;
  #leaving = false;
  readonly #sinceMs: number;
  readonly #streams = new Set<StreamGuard>();
  #lookedMs: number;
  #credit: number = OVERHEAD.atOnce;
  /** Bytes read and written at the last check. */
  #read = 0;
  #written = 0;
  /** Bytes of request bodies, and streams, since the last check. */
  #bodyBytes = 0;
  #newStreams = 0;
  #begunInTurn = 0;
  #quickResets = 0;
  #smallPieces = 0;
  /** Time of the last check of small pieces. */
  #piecesMs: number;
  #isRaised = false;
  #endedMs: number | undefined;

  constructor(
    socket: Socket,
    { id, nowMs, leavesMs }: { readonly id: string; readonly nowMs: number; readonly leavesMs: number },
  ) {
    this.id = id;
    this.socket = socket;
    this.#leavesMs = leavesMs;
    this.#sinceMs = nowMs;
    this.#lookedMs = this.#piecesMs = nowMs;
  }

  add(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    {
      pending,
      ...shared
    }: Omit<StreamGuardOptions, "waits" | "took"> & {
      readonly pending: PendingCalls<Connection>;
    },
  ): void {
    let pieces = 0;
    const took = (bytes: number): void => {
      this.#bodyBytes += bytes;
      pieces += 1;
      if (pieces <= SMALL_PIECES.perStream || bytes >= SMALL_PIECES.bytes) return;
      this.#smallPieces += 1 - bytes / SMALL_PIECES.bytes;
      if (this.#smallPieces <= SMALL_PIECES.atOnce) return;
      // Checked at once: the next check of all connections is late when the event loop is busy with pieces.
      this.#forgivePieces(shared.services.clock.monotonic());
      if (this.#smallPieces > SMALL_PIECES.atOnce) pending.end(this);
    };
    const guard: StreamGuard = new StreamGuard(stream, headers, {
      ...shared,
      took,
      waits: (isWaiting) => (isWaiting ? pending.add(this, stream) : pending.remove(this, stream)),
    });
    this.#streams.add(guard);
    this.#newStreams += 1;
    if (this.#begunInTurn === 0) setImmediate(() => (this.#begunInTurn = 0));
    this.#begunInTurn += 1;
    if (this.#begunInTurn > BEGUN_IN_TURN * (this.#isRaised ? MAX_STREAMS.inUse : MAX_STREAMS.first)) pending.end(this);
    stream.on("close", () => {
      this.#streams.delete(guard);
      guard.closed();
      if (guard.isQuickReset) this.#quickResets += 1;
      else if (guard.hasKey) this.#quickResets = Math.max(this.#quickResets - 1, -QUICK_RESETS.earned);
      // Checked at once: each may cost as much as a call.
      if (this.#quickResets > QUICK_RESETS.atOnce) this.socket.destroy();
      if (this.#leaving && this.#streams.size === 0) this.#goAway();
    });
    // The stream must be known first, so that GOAWAY includes it.
    if (this.#leaving) setImmediate(() => this.#goAway());
  }

  /** Ends the connection and frees its streams at once; the socket alone would free them when its close event comes. */
  end(): void {
    // Not now: the library still uses the stream that has just begun.
    process.nextTick(() => {
      this.session?.destroy();
      this.socket.destroy();
    });
  }

  get isIdle(): boolean {
    return this.#streams.size === 0;
  }

  /** Whether it has a call in flight with a valid key. */
  get isServing(): boolean {
    for (const { isInFlight } of this.#streams) if (isInFlight) return true;
    return false;
  }

  /**
   * Sends GOAWAY with the next stream, or when no stream is open. Not earlier: some clients, among them grpc-js, end all their
   * calls when they cannot send a PING after GOAWAY.
   */
  leave(): void {
    this.#leaving = true;
    if (this.#streams.size === 0) this.#goAway();
  }

  /** A connection without streams so far gets GOAWAY with its first one, which may be on its way. */
  #goAway(): void {
    this.session?.close();
  }

  look(nowMs: number): void {
    const { socket } = this;
    if (this.#isSilent(nowMs) || this.#isOverdue(nowMs) || this.#isFlood(nowMs)) return void socket.destroy();
    this.#forgivePieces(nowMs);
    if (!this.#leaving && nowMs >= this.#leavesMs) this.leave();
    let inFlight = 0;
    for (const guard of this.#streams) {
      guard.look(nowMs);
      if (guard.isInFlight) inFlight += 1;
    }
    if (inFlight >= IN_USE && !this.#isRaised) this.#raiseLimit();
  }

  #raiseLimit(): void {
    this.#isRaised = true;
    if (this.session?.destroyed === false) this.session.settings({ maxConcurrentStreams: MAX_STREAMS.inUse });
  }

  /** Whether its preface is late. */
  #isSilent(nowMs: number): boolean {
    return nowMs - this.#sinceMs > HELLO_MS && this.socket.bytesRead < HELLO_BYTES;
  }

  /** Whether the client keeps a closed connection open. */
  #isOverdue(nowMs: number): boolean {
    if (!this.socket.writableEnded) return false;
    this.#endedMs ??= nowMs;
    return nowMs - this.#endedMs > FAREWELL_MS;
  }

  /** Grants the allowance of small pieces for the time since the last check. */
  #forgivePieces(nowMs: number): void {
    const earned = Math.min(nowMs - this.#piecesMs, MAX_EARNED_MS) * SMALL_PIECES.perMs;
    this.#smallPieces = Math.max(0, this.#smallPieces - earned);
    this.#piecesMs = nowMs;
  }

  /** Whether it exceeds the allowance for bytes beside request bodies. */
  #isFlood(nowMs: number): boolean {
    const { bytesRead, bytesWritten } = this.socket;
    const earned =
      Math.min(nowMs - this.#lookedMs, MAX_EARNED_MS) * OVERHEAD.perMs +
      this.#newStreams * OVERHEAD.perStream +
      (bytesWritten - this.#written) * OVERHEAD.perByteSent +
      this.#bodyBytes * OVERHEAD.perByteOfBody;
    const spent = bytesRead - this.#read - this.#bodyBytes;
    if (this.#quickResets > 0)
      this.#quickResets = Math.max(0, this.#quickResets - (nowMs - this.#lookedMs) * QUICK_RESETS.perMs);
    this.#credit = Math.min(OVERHEAD.atOnce, this.#credit + earned) - spent;
    [this.#lookedMs, this.#read, this.#written] = [nowMs, bytesRead, bytesWritten];
    this.#bodyBytes = this.#newStreams = 0;
    return this.#credit < 0;
  }
}
