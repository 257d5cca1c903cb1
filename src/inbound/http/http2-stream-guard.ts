import { constants, type ServerHttp2Stream } from "node:http2";
import { Readable } from "node:stream";
import type { Clock } from "../../core/clock.ts";
import { arrivesTooSlowly } from "../arrival-limits.ts";
import type { GuardedStream, StreamFacts } from "../http2/guarded-connection.ts";
import { UnreadAnswer } from "../http2/unread-answer.ts";

/** Time limit of an arriving request, as over HTTP/1.1. */
const ARRIVAL_MS = 60_000;
/** Time in which the rest of a request is read and dropped after its answer. */
const LINGER_MS = 1000;
/** Duration below which a reset request counts as a quick reset. */
const QUICK_MS = 250;

export interface HttpStreamGuardOptions extends Pick<StreamFacts, "took" | "waits" | "socket"> {
  readonly clock: Clock;
  /** Time after which an unread response closes its stream, in milliseconds. */
  readonly stallMs: number;
}

/** The request of a stream. */
interface Request {
  readonly body: Readable;
  /** Undefined: not declared. */
  readonly declaredBytes: number | undefined;
  /** Answers a request whose body arrives too slowly. */
  readonly refuseSlow: () => void;
}

/** Guards a stream that carries a request of HTTP. Pending calls, see `PendingCalls`, are those without a valid key. */
export class HttpStreamGuard implements GuardedStream {
  readonly socket: StreamFacts["socket"];
  readonly #stream: ServerHttp2Stream;
  readonly #options: HttpStreamGuardOptions;
  readonly #sinceMs: number;
  #bytes = 0;
  /** Since when the body is read, and its bytes before. */
  #readSinceMs: number;
  #readFrom = 0;
  readonly #answer: UnreadAnswer;
  #request: Request | undefined;
  #arrived = false;
  #hasKey = false;
  #answeredMs: number | undefined;

  constructor(stream: ServerHttp2Stream, options: HttpStreamGuardOptions) {
    const { clock, took, waits, socket, stallMs } = options;
    this.#stream = stream;
    this.#options = options;
    this.socket = socket;
    this.#sinceMs = this.#readSinceMs = clock.monotonic();
    waits(true);
    // Handlers get errors from the request.
    stream.on("error", () => undefined);
    stream.on("finish", () => stream.closed || waits(true));
    this.#answer = new UnreadAnswer(stream, { stallMs, ended: (bytes) => waits(true, bytes) });
    // Not a listener: what arrives while it is not read would cost nothing.
    stream.push = (piece: Buffer | null) => {
      if (piece === null) {
        this.#arrived = true;
        return Readable.prototype.push.call(stream, null);
      }
      took(piece.length);
      this.#bytes += piece.length;
      // A copy of a small part: it would keep all bytes that were read from the socket with it.
      const own = piece.length * 4 < piece.buffer.byteLength ? Buffer.from(piece) : piece;
      return Readable.prototype.push.call(stream, own);
    };
  }

  /** The stream's request begins. */
  begin(request: Request): void {
    this.#request = request;
  }

  /** The caller is authenticated. */
  authenticated(): void {
    this.#hasKey = true;
    if (!this.#stream.writableEnded) this.#options.waits(false);
  }

  get hasKey(): boolean {
    return this.#hasKey;
  }

  get isServed(): boolean {
    return this.#hasKey && !this.#stream.writableEnded;
  }

  get isInFlight(): boolean {
    const hasArrived = this.#arrived || this.#stream.endAfterHeaders;
    return hasArrived && this.isServed;
  }

  get isQuickReset(): boolean {
    // Also a reset without an error, before the answer was complete.
    if (this.#stream.rstCode === constants.NGHTTP2_NO_ERROR && !this.#stream.aborted) return false;
    return this.#options.clock.monotonic() - this.#sinceMs < QUICK_MS;
  }

  look(nowMs: number): void {
    // The writable side of a request with HEAD is finished at once.
    if (this.#stream.writableFinished && this.#stream.headersSent) return this.#lookAtRest(nowMs);
    this.#lookAtBody(nowMs);
    this.#answer.look(nowMs);
  }

  reset(): void {
    this.#stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  }

  closed(): void {
    this.#options.waits(false);
  }

  /** Ends a request whose body arrives too slowly. The time of the sender starts when the body is read. */
  #lookAtBody(nowMs: number): void {
    const request = this.#request;
    if (request === undefined || this.#stream.endAfterHeaders || this.#stream.readableEnded) return;
    const isTooLate = nowMs - this.#sinceMs > ARRIVAL_MS;
    if (request.body.readableFlowing !== true && !isTooLate) {
      this.#readSinceMs = nowMs;
      this.#readFrom = this.#bytes;
      return;
    }
    const elapsedMs = nowMs - this.#readSinceMs;
    if (!isTooLate && !arrivesTooSlowly(this.#bytes - this.#readFrom, elapsedMs, request.declaredBytes)) return;
    this.#request = undefined;
    if (this.#stream.state.remoteClose !== 1) request.refuseSlow();
  }

  /** Closes a stream whose answer is sent, when the request goes on. */
  #lookAtRest(nowMs: number): void {
    this.#answeredMs ??= nowMs;
    if (nowMs - this.#answeredMs > LINGER_MS && !this.#stream.closed) this.#stream.close(constants.NGHTTP2_NO_ERROR);
  }
}
