import { isIP } from "node:net";
import { Failure } from "../../core/failure.ts";
import type { CallProgress } from "../../core/provider.ts";
import { type AttemptTrace, traceHeaders } from "../../core/trace.ts";
import { isMetadataAddress, isPrivateAddress } from "../../net/private-addresses.ts";
import { LargeBodyScheduler, ReadScheduler, TURN_BYTES } from "../../scheduling/read-scheduler.ts";
import type { Carrier, RequestSender, ResponseListener } from "./connection.ts";
import { type ConnectionLimits, Connections } from "./connections.ts";
import type { Egress } from "./dialer.ts";
import { lookupHost, lookupPublic, lookupWithoutMetadata } from "../../net/host-lookup.ts";
import { Http2Connections } from "./http2-connections.ts";
import { type HeadWriter, Http1Heads, Http2Heads } from "./request-head.ts";
import type { ResponseHeaders } from "./response-parser.ts";
import { NO_SOCKET_LIMIT, type SocketLimit } from "./socket-limit.ts";
import { isOutOfDescriptors, toTransportFailure } from "./transport-failure.ts";

/** Address of a provider and limits of its connections. */
export interface UpstreamOptions {
  /** Origin and path prefix; see `docs/configuration.md` for what each dialect appends. */
  readonly baseUrl: string;
  /** Allows loopback and private addresses, and plain http. */
  readonly allowPrivate: boolean;
  /**
   * Whether the address comes from the stored configuration (the dashboard) instead of the operator's file. Then it is looked up and
   * checked here even if a proxy could do that, and addresses of cloud metadata services are refused. Default: no.
   */
  readonly isStored?: boolean | undefined;
  /** Time limit in ms for DNS, TCP and TLS together. */
  readonly connectMs: number;
  /** Connection limits, and whether each account has its own connections. Default: no limits, shared. */
  readonly connections?: ConnectionLimits & {
    readonly perAccount: boolean;
    /** Whether calls share HTTP/2 connections. Only for `https:`. */
    readonly http2: boolean;
  };
  /** Default: direct. */
  readonly egress?: Egress;
  /** Whether requests have the headers `traceparent` and `tracestate` of their trace. Default: no. */
  readonly sendsTraceContext?: boolean;
  /** Limit of the connections to all providers, shared by them. Default: none. */
  readonly sockets?: SocketLimit;
  /** Scheduler of reads, shared by all providers. Default: a separate one. */
  readonly readScheduler?: Pick<ReadScheduler, "take">;
}

/** One request with a body of JSON. */
export interface UpstreamRequest {
  /** Default: POST. */
  readonly method?: "GET" | undefined;
  /** Appended to the base URL's path; begins with a slash. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  body: string | Buffer;
  /** Its abort reason is a Failure. */
  readonly signal: AbortSignal;
  /** Longest silence in ms between two reads of the response body. */
  readonly idleMs: number;
  readonly progress?: CallProgress | undefined;
  /**
   * Key for fair scheduling: of the queue for a connection, and of this response's reads under load. Requests without
   * one share a queue.
   */
  readonly keyFamilyId?: string | undefined;
  /** Selects the connection pool if accounts have their own. Requests without one share a pool. */
  readonly accountId?: string | undefined;
  /** Default: the request is not traced. */
  readonly trace?: AttemptTrace | undefined;
}

/** Size limit of a whole response and of one stream event, in bytes. Pictures arrive as base64. */
export const MAX_RESPONSE_BYTES = 64 * 1024 * 1024;

/** Unread bytes of one response above which its socket is paused. */
const HIGH_WATER_BYTES = 64 * 1024;
/** Limit of pieces of a whole body. Pieces may be single bytes, and each Buffer takes far more memory than that. */
const MAX_PIECES = 256 * 1024;

/** No connection limits; connections are shared by all accounts. */
export const UNLIMITED = {
  max: Infinity,
  maxAgeMs: Infinity,
  maxRequests: Infinity,
  perAccount: false,
  http2: false,
};

/** Time in ms that a complete answer's body may take to end before its connection is closed. */
const LINGER_MS = 1000;

/** The connections to one provider. */
export interface Upstream {
  /**
   * Sends the request, nearly always a POST, with `accept` as its media type. Resolves once status and headers of the response have arrived.
   * Throws a Failure.
   */
  post(request: UpstreamRequest, accept: string): Promise<UpstreamResponse>;
  /** Closes idle connections. */
  close(): Promise<void>;
}

/** Creates the connection pool of one provider. Does not follow redirects. */
export function connectUpstream({
  baseUrl,
  allowPrivate,
  isStored = false,
  connectMs,
  connections: limits = UNLIMITED,
  egress,
  sendsTraceContext = false,
  readScheduler = new ReadScheduler(),
  sockets = NO_SOCKET_LIMIT,
}: UpstreamOptions): Upstream {
  const url = new URL(baseUrl);
  const host = url.hostname.replace(/^\[|\]$/g, "");
  if (!allowPrivate && isIP(host) && isPrivateAddress(host)) throw new Error(`${baseUrl} is a private address`);
  if (isStored && isIP(host) && isMetadataAddress(host)) throw new Error(`${baseUrl} is an address of metadata`);
  if (!allowPrivate && url.protocol !== "https:") throw new Error(`${baseUrl} is plain http`);
  if (limits.http2 && url.protocol !== "https:") throw new Error(`${baseUrl} is plain http, without HTTP/2`);
  const lookupPrivate = isStored ? lookupWithoutMetadata : lookupHost;
  const lookup = allowPrivate ? lookupPrivate : lookupPublic;
  const origin = { url, lookup, proxyGetsAddress: isStored, ...egress };
  const options = { limits, sendsTraceContext, readScheduler, sockets };
  return limits.http2
    ? carry(new Http2Heads(url), new Http2Connections(origin, connectMs, { ...limits, sockets }), options)
    : carry(new Http1Heads(url), new Connections(origin, connectMs, { ...limits, sockets }), options);
}

const NO_HEADERS = {};

function carry<Head>(
  heads: HeadWriter<Head>,
  sender: RequestSender<Head>,
  {
    limits,
    sendsTraceContext,
    readScheduler,
    sockets,
  }: {
    readonly limits: { readonly perAccount: boolean };
    readonly sendsTraceContext: boolean;
    readonly readScheduler: Pick<ReadScheduler, "take">;
    readonly sockets: Pick<SocketLimit, "exhausted">;
  },
): Upstream {
  const turns = new LargeBodyScheduler();
  return {
    post: (
      { method = "POST", path, headers, body, signal, idleMs, progress, trace, keyFamilyId = "", accountId = "" },
      accept,
    ) =>
      new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason);
        if (progress !== undefined) {
          progress.unsent = true;
          progress.isWritten = false;
        }
        const bytes = typeof body === "string" ? Buffer.from(body) : body;
        const ports = { signal, turns, readScheduler, sockets, progress, trace, keyFamilyId, sentBytes: bytes.length };
        const exchange = new Exchange(ports, resolve, reject);
        try {
          const traced =
            trace !== undefined && sendsTraceContext ? Object.fromEntries(traceHeaders(trace.context)) : NO_HEADERS;
          const head = heads.write({ method, path, accept, headers, trace: traced });
          const pool = limits.perAccount ? accountId : "";
          sender.send({ head, body: bytes, idleMs, key: keyFamilyId, pool }, exchange);
        } catch (error) {
          exchange.onError(error as Error);
        }
      }),
    close: () => sender.close(),
  };
}

/** Memory for a body while it is read. */
export interface BodyRoom {
  /** Requests memory for the bytes so far. Undefined when there is enough now, else a promise that resolves when there is. */
  take(bytes: number): Promise<void> | undefined;
  /** Call it when reading stops until the body's turn. */
  pause(): void;
  /** Call it when the body's turn has come. */
  resume(): void;
}

/** A response whose status and headers have arrived. The body is read on demand, with back-pressure to the provider. */
export interface UpstreamResponse {
  readonly status: number;
  readonly headers: ResponseHeaders;
  /**
   * Returns all bytes since the last read; undefined at the end of the body, or if none arrive within `waitMs`. Throws
   * a Failure, or the signal's reason.
   */
  read(waitMs?: number): Promise<readonly Buffer[] | undefined>;
  /**
   * Returns the rest of the body as the received buffers. From TURN_BYTES on it takes memory of `room`, and reads nothing until there is
   * enough. `maxBytes` default: MAX_RESPONSE_BYTES. Throws `upstream_protocol` beyond it, another Failure, or the signal's reason.
   */
  body(room?: BodyRoom, maxBytes?: number): Promise<readonly Buffer[]>;
  /** Stops reading the socket until the promise settles; the provider's silence meanwhile does not count. Settles like the promise. */
  pause(until: Promise<void>): Promise<void>;
  /** The answer is complete: keeps the connection if the body ends within LINGER_MS. */
  complete(): void;
  /** Discards the response and closes the connection unless the body has ended. Reads then throw the reason. Returns whether it closed it. */
  abandon(reason?: Failure): boolean;
}

interface ExchangePorts {
  readonly signal: AbortSignal;
  readonly turns: LargeBodyScheduler;
  readonly readScheduler: Pick<ReadScheduler, "take">;
  readonly sockets: Pick<SocketLimit, "exhausted">;
  readonly progress: CallProgress | undefined;
  readonly trace: AttemptTrace | undefined;
  readonly keyFamilyId: string;
  /** Length of the request's body. */
  readonly sentBytes: number;
}

/** One request and its response. */
class Exchange implements ResponseListener, UpstreamResponse {
  status = 0;
  headers: ResponseHeaders = {};
  connection: Carrier | undefined;
  readonly #signal: AbortSignal;
  readonly #turns: LargeBodyScheduler;
  readonly #readScheduler: Pick<ReadScheduler, "take">;
  readonly #sockets: Pick<SocketLimit, "exhausted">;
  readonly #progress: CallProgress | undefined;
  readonly #trace: AttemptTrace | undefined;
  readonly #keyFamilyId: string;
  readonly #sentBytes: number;
  readonly #resolve: (response: UpstreamResponse) => void;
  readonly #reject: (reason: unknown) => void;
  readonly #onAbort = (): void => this.#fail(this.#signal.reason);
  #state: "waiting" | "open" | "lingering" | "ended" | "failed" = "waiting";
  #reason: unknown;
  #arrived: Buffer[] = [];
  #arrivedBytes = 0;
  #wake: (() => void) | undefined;
  /** Whether the reader is queued in the read scheduler. */
  #isQueued = false;
  #lingering: NodeJS.Timeout | undefined;
  /** Set while the whole body is collected: the socket is read up to `#maxBytes` and pauses only for other calls. */
  #collecting = false;
  #maxBytes = MAX_RESPONSE_BYTES;
  #room: BodyRoom | undefined;
  /** Whether requested memory is not available yet. */
  #waitsForRoom = false;
  /** Start of collecting on the monotonic clock, and bytes received since the scheduler last resumed it. */
  #collectingSince = 0;
  #turnBytes = 0;

  constructor(
    { signal, turns, readScheduler, sockets, progress, trace, keyFamilyId, sentBytes }: ExchangePorts,
    resolve: (response: UpstreamResponse) => void,
    reject: (reason: unknown) => void,
  ) {
    this.#signal = signal;
    this.#turns = turns;
    this.#readScheduler = readScheduler;
    this.#sockets = sockets;
    this.#progress = progress;
    this.#trace = trace;
    this.#keyFamilyId = keyFamilyId;
    this.#sentBytes = sentBytes;
    this.#resolve = resolve;
    this.#reject = reject;
    signal.addEventListener("abort", this.#onAbort, { once: true });
  }

  onSent(): void {
    const sentMs = performance.now();
    if (this.#progress !== undefined) {
      this.#progress.unsent = false;
      this.#progress.sentMs = sentMs;
    }
    if (this.#trace !== undefined) this.#trace.sentMs = sentMs;
  }

  onUnsent(): void {
    if (this.#progress !== undefined) this.#progress.unsent = true;
  }

  onHead(status: number, headers: ResponseHeaders, isWritten: boolean): void {
    this.status = status;
    this.headers = headers;
    if (this.#progress !== undefined) {
      this.#progress.headMs = performance.now();
      this.#progress.isWritten = isWritten;
    }
    this.#state = "open";
    this.#readScheduler.take(this.#keyFamilyId, () => {
      this.#resolve(this);
      return this.#arrivedBytes;
    });
  }

  onData(chunk: Buffer): void {
    if (this.#state === "lingering") this.abandon();
    if (this.#state !== "open") return;
    this.#arrived.push(chunk);
    this.#arrivedBytes += chunk.length;
    if (this.#collecting) {
      this.#turnBytes += chunk.length;
      if (this.#arrivedBytes > this.#maxBytes || this.#arrived.length > MAX_PIECES) this.#fail(tooLarge());
      else if (this.#turnBytes > TURN_BYTES) this.#waitForTurn();
      return;
    }
    if (this.#arrivedBytes > HIGH_WATER_BYTES) this.connection?.pause();
    this.#wakeInTurn();
  }

  onEnd(): void {
    this.connection = undefined;
    this.#state = "ended";
    this.#settle();
    this.#wakeInTurn();
  }

  onError(error: Error): void {
    this.connection = undefined;
    if (isOutOfDescriptors(error)) this.#sockets.exhausted();
    const failure = toTransportFailure(error, { answered: this.#state !== "waiting", sentBytes: this.#sentBytes });
    // Bytes received before the connection broke are still delivered.
    this.#fail(failure, this.#state === "open" ? this.#arrived : undefined);
  }

  read(waitMs?: number): Promise<readonly Buffer[] | undefined> {
    // Not `async`: saves a promise and a microtask for each read.
    return new Promise((resolve, reject) => {
      if (this.#arrived.length > 0 || this.#state !== "open") return this.#give(resolve, reject);
      const timer = waitMs === undefined ? undefined : setTimeout(() => this.#wake?.(), waitMs);
      this.#wake = () => {
        this.#wake = undefined;
        clearTimeout(timer);
        this.#give(resolve, reject);
      };
    });
  }

  async body(room?: BodyRoom, maxBytes = MAX_RESPONSE_BYTES): Promise<readonly Buffer[]> {
    this.#collecting = true;
    this.#maxBytes = maxBytes;
    this.#room = room;
    this.#collectingSince = performance.now();
    if (this.#arrivedBytes > maxBytes) this.#fail(tooLarge());
    this.connection?.resume();
    if (this.#state === "open") await this.#arrival();
    if (this.#state === "failed") throw this.#reason;
    // A short response may already have arrived as a whole.
    if (this.#arrivedBytes > maxBytes) throw tooLarge();
    const pieces = this.#arrived;
    this.#arrived = [];
    return pieces;
  }

  async pause(until: Promise<void>): Promise<void> {
    this.connection?.pause();
    await until;
    if (this.#arrivedBytes <= HIGH_WATER_BYTES) this.connection?.resume();
  }

  complete(): void {
    if (this.#state !== "open") return;
    this.#state = "lingering";
    this.#arrived = [];
    this.connection?.resume();
    this.#lingering = setTimeout(() => this.abandon(), LINGER_MS).unref();
  }

  abandon(reason?: Failure): boolean {
    if (this.#state !== "open" && this.#state !== "lingering") return false;
    this.#fail(reason ?? new Failure("cancelled", "The response was abandoned."));
    return true;
  }

  /** Settles a read: all received bytes, undefined if there are none, or the failure if the exchange has failed. */
  #give(resolve: (bytes: readonly Buffer[] | undefined) => void, reject: (reason: unknown) => void): void {
    const chunks = this.#arrived;
    if (chunks.length === 0) return this.#state === "failed" ? reject(this.#reason) : resolve(undefined);
    this.#arrived = [];
    this.#arrivedBytes = 0;
    if (this.#state === "open") this.connection?.resume();
    // One buffer: each extra one costs the decoder and the parser as much as several events.
    resolve(chunks.length === 1 ? chunks : [Buffer.concat(chunks)]);
  }

  #waitForTurn(): void {
    this.connection?.pause();
    this.#turnBytes = 0;
    // The rest of a complete response may arrive in spite of the pause.
    if (this.#waitsForRoom) return;
    const wait = (): void => {
      this.#waitsForRoom = false;
      this.#room?.pause();
      this.#turns.wait(this.#collectingSince, () => {
        this.#room?.resume();
        this.connection?.resume();
      });
    };
    const waiting = this.#room?.take(this.#arrivedBytes);
    if (waiting === undefined) return wait();
    this.#waitsForRoom = true;
    waiting.then(wait, (reason: unknown) => this.#fail(reason));
  }

  #arrival(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = () => {
        this.#wake = undefined;
        resolve();
      };
    });
  }

  /** Wakes the reader through the read scheduler. */
  #wakeInTurn(): void {
    if (this.#wake === undefined || this.#isQueued) return;
    this.#isQueued = true;
    this.#readScheduler.take(this.#keyFamilyId, this.#onTurn);
  }

  readonly #onTurn = (): number => {
    this.#isQueued = false;
    const bytes = this.#arrivedBytes;
    // A reader that another event woke has already taken the bytes.
    if (this.#arrived.length > 0 || this.#state !== "open") this.#wake?.();
    return bytes;
  };

  #settle(): void {
    clearTimeout(this.#lingering);
    this.#signal.removeEventListener("abort", this.#onAbort);
  }

  #fail(reason: unknown, arrived?: Buffer[]): void {
    if (this.#state === "ended" || this.#state === "failed") return;
    this.#state = "failed";
    this.#reason = reason;
    this.#arrived = arrived ?? [];
    this.connection?.destroy();
    this.connection = undefined;
    this.#settle();
    this.#wake?.();
    // No effect after the promise has resolved: read() then throws the reason after the received bytes.
    if (arrived === undefined) this.#reject(reason);
  }
}

const tooLarge = (): Failure =>
  new Failure("upstream_protocol", "The upstream provider's answer is larger than this gateway reads.");
