import { isIP } from "node:net";
import { Failure } from "../../core/failure.ts";
import type { CallProgress } from "../../core/provider.ts";
import { isPrivateAddress } from "../../net/private-addresses.ts";
import type { ResponseHeaders } from "./response-parser.ts";
import type { ResponseListener, Carrier } from "./connection.ts";
import { type ConnectionLimits, Connections } from "./connections.ts";
import { lookupPublic } from "./public-lookup.ts";
import { LargeBodyScheduler, TURN_BYTES } from "../../scheduling/large-body-scheduler.ts";
import { RequestHeads } from "./request-head.ts";
import { ReadScheduler } from "../../scheduling/read-scheduler.ts";
import { toTransportFailure } from "./transport-failure.ts";

/** Where a provider is and how it is reached. */
export interface UpstreamOptions {
  /** Origin and path prefix; see `docs/configuration.md` for what each dialect appends. */
  readonly baseUrl: string;
  /** Allows loopback and private addresses, and plain http. */
  readonly allowPrivate: boolean;
  /** Time for DNS, TCP and TLS together. */
  readonly connectMs: number;
  /** How many connections there may be, for how long, and whether each account has its own. Default: no limits, shared. */
  readonly connections?: ConnectionLimits & { readonly perAccount: boolean };
  /** Shared by all that the event loop has to read. Default: of its own. */
  readonly readScheduler?: Pick<ReadScheduler, "take">;
}

/** One POST of JSON. */
export interface UpstreamRequest {
  /** Appended to the base URL's path; begins with a slash. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  body: string | Buffer;
  /** Aborts with a Failure as its reason. */
  readonly signal: AbortSignal;
  /** The longest silence between two reads of the body. */
  readonly idleMs: number;
  readonly progress?: CallProgress | undefined;
  /**
   * Whose turn it takes for a connection when all are in use, and for the answer's parts when there are more than there is
   * time for. Default: of all that say nothing.
   */
  readonly keyFamilyId?: string | undefined;
  /** Where accounts have connections of their own: which one's it uses. Default: of all that say nothing. */
  readonly accountId?: string | undefined;
}

/** The most that is read of an answer that is not a stream, and of one event of a stream. Pictures come as base64. */
export const MAX_RESPONSE_BYTES = 64 * 1024 * 1024;

/** Unread bytes of one answer above which its socket is not read further. */
const HIGH_WATER_BYTES = 64 * 1024;

/** As many connections as there are requests, shared by all accounts. */
export const UNLIMITED = { max: Infinity, maxAgeMs: Infinity, maxRequests: Infinity, perAccount: false };

/** How long a finished answer may take to end its body before its connection is given up. */
const LINGER_MS = 1000;

/** The connections to one provider. */
export interface Upstream {
  /**
   * Sends the request and asks for this media type; the answer's status and headers are in when the promise resolves.
   * Throws a Failure.
   */
  post(request: UpstreamRequest, accept: string): Promise<UpstreamResponse>;
  /** Closes idle connections. */
  close(): Promise<void>;
}

/** Connects to a provider with connections of its own. Redirects are not followed, environment proxies not used. */
export function connectUpstream({
  baseUrl,
  allowPrivate,
  connectMs,
  connections: limits = UNLIMITED,
  readScheduler = new ReadScheduler(),
}: UpstreamOptions): Upstream {
  const url = new URL(baseUrl);
  const host = url.hostname.replace(/^\[|\]$/g, "");
  if (!allowPrivate && isIP(host) && isPrivateAddress(host)) throw new Error(`${baseUrl} is a private address`);
  if (!allowPrivate && url.protocol !== "https:") throw new Error(`${baseUrl} is plain http`);
  const heads = new RequestHeads(url);
  const origin = { url, ...(!allowPrivate && { lookup: lookupPublic }) };
  const connections = new Connections(origin, connectMs, limits);
  const turns = new LargeBodyScheduler();
  return {
    post: ({ path, headers, body, signal, idleMs, progress, keyFamilyId = "", accountId = "" }, accept) =>
      new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason);
        if (progress !== undefined) progress.unsent = true;
        const exchange = new Exchange({ signal, turns, readScheduler, progress, keyFamilyId }, resolve, reject);
        try {
          const head = heads.write(path, headers, accept);
          const bytes = typeof body === "string" ? Buffer.from(body) : body;
          const pool = limits.perAccount ? accountId : "";
          connections.send({ head, body: bytes, idleMs, key: keyFamilyId, pool }, exchange);
        } catch (error) {
          exchange.onError(error as Error);
        }
      }),
    close: () => connections.close(),
  };
}

/** An answer whose status and headers are in and whose body is read on demand: an unread body stalls the provider. */
export interface UpstreamResponse {
  readonly status: number;
  readonly headers: ResponseHeaders;
  /**
   * All that has arrived since the last read; undefined at the end, or when nothing came within `waitMs`. Throws a
   * Failure, or the signal's reason.
   */
  read(waitMs?: number): Promise<readonly Buffer[] | undefined>;
  /** All that is left of the body, in the pieces in which it arrived. Throws a Failure, or the signal's reason. */
  body(): Promise<readonly Buffer[]>;
  /** Nothing more is wanted, and the answer is complete: keeps the connection if its body ends soon. */
  complete(): void;
  /** Nothing more is wanted: closes the connection unless the body has ended. */
  abandon(): void;
}

interface ExchangePorts {
  readonly signal: AbortSignal;
  readonly turns: LargeBodyScheduler;
  readonly readScheduler: Pick<ReadScheduler, "take">;
  readonly progress: CallProgress | undefined;
  readonly keyFamilyId: string;
}

/** One request and its answer. */
class Exchange implements ResponseListener, UpstreamResponse {
  status = 0;
  headers: ResponseHeaders = {};
  connection: Carrier | undefined;
  readonly #signal: AbortSignal;
  readonly #turns: LargeBodyScheduler;
  readonly #readScheduler: Pick<ReadScheduler, "take">;
  readonly #progress: CallProgress | undefined;
  readonly #keyFamilyId: string;
  readonly #resolve: (answer: UpstreamResponse) => void;
  readonly #reject: (reason: unknown) => void;
  readonly #onAbort = (): void => this.#fail(this.#signal.reason);
  #state: "waiting" | "open" | "lingering" | "ended" | "failed" = "waiting";
  #reason: unknown;
  #arrived: Buffer[] = [];
  #arrivedBytes = 0;
  #wake: (() => void) | undefined;
  /** Whether the reader's turn is to come. */
  #isQueued = false;
  #lingering: NodeJS.Timeout | undefined;
  /** Set while the whole body is collected: then the socket is read up to the limit, and pauses only for others. */
  #collecting = false;
  /** When collecting began, by the monotonic clock, and what has arrived since its last turn. */
  #collectingSince = 0;
  #turnBytes = 0;

  constructor(
    { signal, turns, readScheduler, progress, keyFamilyId }: ExchangePorts,
    resolve: (answer: UpstreamResponse) => void,
    reject: (reason: unknown) => void,
  ) {
    this.#signal = signal;
    this.#turns = turns;
    this.#readScheduler = readScheduler;
    this.#progress = progress;
    this.#keyFamilyId = keyFamilyId;
    this.#resolve = resolve;
    this.#reject = reject;
    signal.addEventListener("abort", this.#onAbort, { once: true });
  }

  onSent(): void {
    if (this.#progress !== undefined) this.#progress.unsent = false;
  }

  onHead(status: number, headers: ResponseHeaders): void {
    this.status = status;
    this.headers = headers;
    this.#state = "open";
    this.#readScheduler.take(this.#keyFamilyId, () => {
      this.#resolve(this);
      return this.#arrivedBytes;
    });
  }

  onData(chunk: Buffer): void {
    if (this.#state === "lingering") return this.abandon();
    if (this.#state !== "open") return;
    this.#arrived.push(chunk);
    this.#arrivedBytes += chunk.length;
    if (this.#collecting) {
      this.#turnBytes += chunk.length;
      if (this.#arrivedBytes > MAX_RESPONSE_BYTES) this.#fail(tooLarge());
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
    const failure = toTransportFailure(error, this.#state !== "waiting");
    // What has arrived was said, although nobody had the time to read it before the connection broke.
    this.#fail(failure, this.#state === "open" ? this.#arrived : undefined);
  }

  read(waitMs?: number): Promise<readonly Buffer[] | undefined> {
    // Not `async`: a promise and its turn less for every read of a stream.
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

  async body(): Promise<readonly Buffer[]> {
    this.#collecting = true;
    this.#collectingSince = performance.now();
    if (this.#arrivedBytes > MAX_RESPONSE_BYTES) this.#fail(tooLarge());
    this.connection?.resume();
    if (this.#state === "open") await this.#arrival();
    if (this.#state === "failed") throw this.#reason;
    const pieces = this.#arrived;
    this.#arrived = [];
    return pieces;
  }

  complete(): void {
    if (this.#state !== "open") return;
    this.#state = "lingering";
    this.#arrived = [];
    this.connection?.resume();
    this.#lingering = setTimeout(() => this.abandon(), LINGER_MS).unref();
  }

  abandon(): void {
    if (this.#state === "open" || this.#state === "lingering")
      this.#fail(new Failure("cancelled", "The answer was abandoned."));
  }

  /** Gives a reader all that has arrived; undefined when nothing has, and the reason when nothing more comes. */
  #give(resolve: (bytes: readonly Buffer[] | undefined) => void, reject: (reason: unknown) => void): void {
    const chunks = this.#arrived;
    if (chunks.length === 0) return this.#state === "failed" ? reject(this.#reason) : resolve(undefined);
    this.#arrived = [];
    this.#arrivedBytes = 0;
    if (this.#state === "open") this.connection?.resume();
    // Each piece costs the decoder and the parser as much as some events do.
    resolve(chunks.length === 1 ? chunks : [Buffer.concat(chunks)]);
  }

  #waitForTurn(): void {
    this.connection?.pause();
    this.#turnBytes = 0;
    this.#turns.wait(this.#collectingSince, () => this.connection?.resume());
  }

  #arrival(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = () => {
        this.#wake = undefined;
        resolve();
      };
    });
  }

  /** Lets the reader go on when there is time for it. */
  #wakeInTurn(): void {
    if (this.#wake === undefined || this.#isQueued) return;
    this.#isQueued = true;
    this.#readScheduler.take(this.#keyFamilyId, this.#onTurn);
  }

  readonly #onTurn = (): number => {
    this.#isQueued = false;
    const bytes = this.#arrivedBytes;
    // Whoever was woken by something else meanwhile has taken what had come.
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
    // Without effect once the answer was handed out: then read() throws it, after what has arrived.
    if (arrived === undefined) this.#reject(reason);
  }
}

const tooLarge = (): Failure =>
  new Failure("upstream_protocol", "The upstream provider's answer is larger than this gateway reads.");
