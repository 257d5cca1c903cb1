import type { Http2Session, ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { Clock } from "../../core/clock.ts";
import type { ClientCertificate } from "../../net/tls-entrance.ts";
import type { PendingCalls } from "./pending-calls.ts";

/** Interval of the checks of each connection. */
export const LOOK_MS = 200;
/** Time limit for the client's preface and SETTINGS. */
const HELLO_MS = 10_000;
/** Bytes of the preface and the shortest SETTINGS. */
const HELLO_BYTES = 33;
/** Time that a client may keep a closed connection open. */
const FAREWELL_MS = 5000;

/**
 * Longest pause in both directions of a connection after GOAWAY, without a call in flight that has a valid key. When such a connection gets
 * an invalid frame, nghttp2 stops to read and to write, and Node neither closes it nor notices that its client does.
 */
const CLOSING_PAUSE_MS = 60_000;

/**
 * Allowance for bytes beside request bodies (headers, control frames): a burst, a rate, and more for each stream and for bytes
 * sent to the client, which it acknowledges.
 */
const OVERHEAD = { atOnce: 512 * 1024, perMs: 256, perStream: 1024, perByteSent: 0.5, perByteOfBody: 1 / 64 } as const;

/** Longest time for which a check grants an allowance: an event loop that is late because of a flood must not pay for it. */
const MAX_EARNED_MS = 2 * LOOK_MS;

/**
 * Allowance for small pieces of bodies (DATA frames): a burst, a rate, and the first ones of each stream. A piece of less than `bytes`
 * counts by the part that it lacks: it costs as much time as a large one, and 6,000 of them fit into one read of the socket. A larger piece
 * makes up for small ones: HAProxy sends two pieces for each that it gets, of 16,328 bytes and of the other 56.
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

/** The guard of one stream: its request must arrive, and its answer must be read. */
export interface GuardedStream {
  /** Whether the call has a valid key. */
  readonly hasKey: boolean;
  /** Whether the call has a valid key, and its answer is not complete: one that waits for its reader is. Its request may still arrive. */
  readonly isServed: boolean;
  /** Whether it is served and its request has arrived. */
  readonly isInFlight: boolean;
  /** Whether the closed stream was reset right after its start. */
  readonly isQuickReset: boolean;
  /** Checks its time limits. Called at intervals, with the clock's `monotonic`. */
  look(nowMs: number): void;
  /** Resets the stream. */
  reset(): void;
  /** Called when the stream is closed. */
  closed(): void;
}

/** Facts and callbacks that a stream's guard gets from its connection. */
export interface StreamFacts {
  /**
   * To be called when the call begins and ceases to be pending, see `PendingCalls`; also repeatedly. `bytes`: unread bytes of an answer
   * that is complete and that nothing else counts. Default: 0.
   */
  readonly waits: (isWaiting: boolean, bytes?: number) => void;
  /** To be called with the size of every piece of the request's body. */
  readonly took: (bytes: number) => void;
  /** To be called once with the size of the headers of a call with a valid key: they are no overhead, as its body is none. */
  readonly tookHeaders: (bytes: number) => void;
  readonly socket: Socket;
  /** The certificate of the connection's client. */
  readonly certificate: ClientCertificate | undefined;
  /** To be called when the request has arrived and its caller is authenticated. */
  readonly authenticated: () => void;
  /** Random, and not known to any client. */
  readonly connectionId: string;
}

/** How a connection guards a stream. */
interface StreamStart {
  readonly clock: Clock;
  readonly pending: PendingCalls<GuardedConnection>;
  /** To be called when a call has ended that had a valid key. */
  readonly known: () => void;
  readonly guard: (facts: Pick<StreamFacts, "waits" | "took" | "tookHeaders">) => GuardedStream;
}

/** A connection and its allowances. */
export class GuardedConnection {
  readonly id: string;
  readonly socket: Socket;
  /** Unknown before the first stream. */
  session: Http2Session | undefined;
  readonly #leavesMs: number;
  #leaving = false;
  readonly #sinceMs: number;
  readonly #maxIdleMs: number;
  /** Undefined while it has streams, and before the first check without. */
  #idleSinceMs: number | undefined;
  readonly #streams = new Set<GuardedStream>();
  #lookedMs: number;
  #credit: number = OVERHEAD.atOnce;
  /** Bytes read and written at the last check. */
  #read = 0;
  #written = 0;
  /** Bytes of request bodies and of headers with a valid key, and streams, since the last check. */
  #bodyBytes = 0;
  #newStreams = 0;
  #begunInTurn = 0;
  #quickResets = 0;
  #smallPieces = 0;
  /** Time of the last check of small pieces. */
  #piecesMs: number;
  #isRaised = false;
  #endedMs: number | undefined;
  /** Time of the last check that saw bytes, or no reason to close a silent connection. */
  #movedMs: number;

  constructor(
    socket: Socket,
    {
      id,
      nowMs,
      leavesMs,
      maxIdleMs,
    }: { readonly id: string; readonly nowMs: number; readonly leavesMs: number; readonly maxIdleMs: number },
  ) {
    this.id = id;
    this.socket = socket;
    this.#leavesMs = leavesMs;
    this.#maxIdleMs = maxIdleMs;
    this.#sinceMs = nowMs;
    this.#lookedMs = this.#piecesMs = this.#movedMs = nowMs;
  }

  add(stream: ServerHttp2Stream, { clock, pending, known, guard: guardWith }: StreamStart): void {
    let pieces = 0;
    let isReset = false;
    const took = (bytes: number): void => {
      this.#bodyBytes += bytes;
      pieces += 1;
      if (isReset || pieces <= SMALL_PIECES.perStream) return;
      this.#smallPieces = Math.max(0, this.#smallPieces + 1 - bytes / SMALL_PIECES.bytes);
      if (this.#smallPieces <= SMALL_PIECES.atOnce) return;
      // Checked at once: the next check of all connections is late when the event loop is busy with pieces.
      this.#forgivePieces(clock.monotonic());
      if (this.#smallPieces <= SMALL_PIECES.atOnce) return;
      if (!this.#serves(guard)) return pending.end(this);
      // Calls of others, behind a proxy or a front, go on.
      isReset = true;
      guard.reset();
    };
    const waits = (isWaiting: boolean, bytes?: number): void =>
      isWaiting ? pending.add(this, stream, bytes) : pending.remove(this, stream);
    const tookHeaders = (bytes: number): void => void (this.#bodyBytes += bytes);
    const guard = guardWith({ took, tookHeaders, waits });
    this.#streams.add(guard);
    this.#idleSinceMs = undefined;
    this.#newStreams += 1;
    if (this.#begunInTurn === 0) setImmediate(() => (this.#begunInTurn = 0));
    this.#begunInTurn += 1;
    if (this.#begunInTurn > BEGUN_IN_TURN * (this.#isRaised ? MAX_STREAMS.inUse : MAX_STREAMS.first)) pending.end(this);
    stream.on("close", () => {
      this.#streams.delete(guard);
      guard.closed();
      if (guard.hasKey) known();
      if (guard.isQuickReset) this.#quickResets += 1;
      else if (guard.hasKey) this.#quickResets = Math.max(this.#quickResets - 1, -QUICK_RESETS.earned);
      // Checked at once: each may cost as much as a call.
      if (this.#quickResets > QUICK_RESETS.atOnce) this.#stop();
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

  /**
   * Ends a connection beyond an allowance. With calls in flight that have a valid key, which behind a proxy or a front may be of others, it
   * gets GOAWAY instead, after which it begins no further streams, and its allowance of bytes once more.
   */
  #stop(): void {
    if (!this.isServing) return void this.socket.destroy();
    this.#credit = OVERHEAD.atOnce;
    this.#goAway();
  }

  get isIdle(): boolean {
    return this.#streams.size === 0;
  }

  /** Whether it has no call in flight with a valid key after GOAWAY: it may be stuck, see CLOSING_PAUSE_MS. */
  get isLeft(): boolean {
    if (this.session?.closed !== true) return false;
    for (const { isInFlight } of this.#streams) if (isInFlight) return false;
    return true;
  }

  /** Whether it has a call with a valid key that arrives or is in flight: behind a proxy or a front it may be of another caller. */
  get isServing(): boolean {
    return this.#serves();
  }

  /** Whether it has such a call beside `one`. */
  #serves(one?: GuardedStream): boolean {
    for (const stream of this.#streams) if (stream !== one && stream.isServed) return true;
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

  /** Leaves, unless a request has arrived: after a time in which the event loop was busy, checks run before sockets are read. */
  #leaveUnlessRead(): void {
    const { bytesRead } = this.socket;
    // Sockets are read between timers and immediates.
    setImmediate(() => {
      if (this.socket.bytesRead === bytesRead) this.leave();
    });
  }

  /** A connection without streams so far gets GOAWAY with its first one, which may be on its way. */
  #goAway(): void {
    this.session?.close();
  }

  look(nowMs: number): void {
    const { socket } = this;
    if (this.#isStuck(nowMs)) return this.end();
    if (this.#isSilent(nowMs) || this.#isOverdue(nowMs)) return void socket.destroy();
    if (this.#isFlood(nowMs)) return this.session?.closed === true ? void socket.destroy() : this.#stop();
    this.#forgivePieces(nowMs);
    this.#idleSinceMs = this.isIdle ? (this.#idleSinceMs ?? nowMs) : undefined;
    const isIdleTooLong = this.#idleSinceMs !== undefined && nowMs - this.#idleSinceMs >= this.#maxIdleMs;
    if (!this.#leaving && nowMs >= this.#leavesMs) this.leave();
    if (!this.#leaving && isIdleTooLong) this.#leaveUnlessRead();
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

  /** Whether it moves no bytes after GOAWAY. Called before `#isFlood`, which notes the bytes. */
  #isStuck(nowMs: number): boolean {
    const { bytesRead, bytesWritten } = this.socket;
    const hasMoved = bytesRead !== this.#read || bytesWritten !== this.#written;
    if (hasMoved || !this.isLeft) this.#movedMs = nowMs;
    return nowMs - this.#movedMs > CLOSING_PAUSE_MS;
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
