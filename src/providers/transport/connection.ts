import type { Socket } from "node:net";
import { type ResponseHeaders, ResponseParser, type ResponseSink } from "./response-parser.ts";
import type { Dialer } from "./dialer.ts";

/** A POST as it is sent: the head but for the body's length and what follows it. */
export interface WireRequest {
  readonly head: string;
  readonly body: Buffer;
  /** The longest silence between two reads of the answer's body. */
  readonly idleMs: number;
  /** Whose turn it takes where requests wait for a connection. */
  readonly key: string;
  /** Connections are shared only by requests with the same one. */
  readonly pool: string;
}

/** What a request is on: a connection, or the queue for one. */
export type Carrier = Pick<Connection, "pause" | "resume" | "destroy">;

/** What hears of a request's answer. After `onEnd` or `onError` it hears nothing more. */
export interface ResponseListener extends ResponseSink {
  /** Carries nothing else until the answer is over. Set by the pool, more than once where it had to wait. */
  connection: Carrier | undefined;
  /** The request is about to be written: from here on the server may have it. */
  onSent(): void;
  onEnd(): void;
  onError(error: Error): void;
}

/** What hears of a connection. */
interface ConnectionOwner {
  /** The time for DNS, TCP and TLS together. */
  readonly connectMs: number;
  /** Its request is over, and it may be used for another one for so long: Infinity when the server has not said. */
  onIdle(connection: Connection, keepAliveMs: number): void;
  /** It broke before anything was written of this request, which another one has to carry. Called after `onClosed`. */
  send(request: WireRequest, listener: ResponseListener): void;
  /** It is closed, or about to be: nothing can be sent over it any more. Called once. */
  onClosed(connection: Connection): void;
}

/** How a connection broke, when it was not the system that said so. `toTransportFailure` knows the codes. */
export function connectionError(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}

/** A head and a body up to this length (bytes) are sent as one piece: a copy costs less than a second piece does. */
const ONE_PIECE = 16 * 1024;

/** What all connections read into, one after another: a buffer for each read costs more than all of the parsing. */
const READ_BUFFER = Buffer.allocUnsafeSlow(64 * 1024);

/** One HTTP/1.1 connection to a provider, which begins to connect at once and takes one request at a time. */
export class Connection implements ResponseSink, Carrier {
  readonly pool: string;
  /** By the monotonic clock; when it was last free, and is to be closed if it still is, is set by its owner. */
  readonly openedAtMs = performance.now();
  freeAtMs = 0;
  closeAtMs = Infinity;
  /** How many requests it has carried, and how long the last one's answer took to begin. */
  requests = 0;
  beginMs = 0;
  readonly #owner: ConnectionOwner;
  readonly #socket: Socket;
  readonly #parser = new ResponseParser(this);
  #connecting: NodeJS.Timeout | undefined;
  /**
   * Waits until the connection is made, and with TLS until the server's certificate was found to be good; on one that has
   * been used, until it has been seen that nothing came on it meanwhile, nor its end.
   */
  #unsent: WireRequest | undefined;
  #listener: ResponseListener | undefined;
  #idleMs = 0;
  #writtenAtMs = 0;
  /** When something came, or reading began again. */
  #heardAtMs = 0;
  /** Whether the answer began before all of its request was written: then it may be the answer to something else. */
  #isEarly = false;
  #hasBegun = false;
  #isPaused = false;
  #isClosed = false;

  constructor(dialer: Dialer, pool: string, owner: ConnectionOwner) {
    this.pool = pool;
    this.#owner = owner;
    this.#socket = dialer.open({
      buffer: READ_BUFFER,
      callback: (size) => this.#read(size === READ_BUFFER.length ? READ_BUFFER : READ_BUFFER.subarray(0, size)),
    });
    this.#connecting = setTimeout(
      () => this.#break(connectionError("CONNECT_TIMEOUT", `no connection within ${owner.connectMs} ms`)),
      owner.connectMs,
    );
    this.#socket
      .once(dialer.readyEvent, () => this.#begin())
      .on("end", () => this.#onEnd())
      .on("error", (error) => this.#break(error))
      .once("close", () => this.#break(connectionError("CLOSED", "the connection is closed")));
  }

  /** Sends a request. Only for a connection that has none. */
  send(request: WireRequest, listener: ResponseListener): void {
    this.#listener = listener;
    this.#hasBegun = false;
    this.#idleMs = request.idleMs;
    this.requests += 1;
    this.#parser.reset();
    this.#unsent = request;
    // Sockets are read between this turn of the event loop and the end of the next.
    if (this.#connecting === undefined) setImmediate(this.#sendUnsent);
  }

  get isFree(): boolean {
    return this.#listener === undefined;
  }

  /** Reads no further for now, but for what was read already: an answer that is not read stalls its sender. */
  pause(): void {
    if (this.#isPaused) return;
    this.#isPaused = true;
    this.#socket.pause();
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#heardAtMs = performance.now();
    this.#socket.resume();
  }

  /**
   * Breaks if its server is silent within an answer for longer than its request allows. Called after sockets were read: a
   * timer for each connection, set anew with each read, costs more than the parsing of an answer.
   */
  breakIfSilent(nowMs: number): void {
    if (this.#listener === undefined || !this.#hasBegun || this.#isPaused) return;
    if (nowMs - this.#heardAtMs > this.#idleMs)
      this.#break(connectionError("SILENCE", `nothing came for ${this.#idleMs} ms`));
  }

  /** Closes it, whatever is under way. Its listener hears nothing more. */
  destroy(): void {
    this.#listener = undefined;
    this.#unsent = undefined;
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearTimeout(this.#connecting);
    this.#socket.destroy();
    this.#owner.onClosed(this);
  }

  onHead(status: number, headers: ResponseHeaders): void {
    this.beginMs = this.#heardAtMs - this.#writtenAtMs;
    this.#isEarly = this.#socket.writableLength > 0;
    this.#hasBegun = true;
    this.#listener?.onHead(status, headers);
  }

  onData(bytes: Buffer): void {
    this.#listener?.onData(bytes);
  }

  #begin(): void {
    clearTimeout(this.#connecting);
    this.#connecting = undefined;
    this.#sendUnsent();
  }

  readonly #sendUnsent = (): void => {
    const request = this.#unsent;
    this.#unsent = undefined;
    if (request !== undefined) this.#write(request);
  };

  #write({ head, body }: WireRequest): void {
    this.#listener?.onSent();
    this.#writtenAtMs = performance.now();
    const whole = `${head}content-length: ${body.length}\r\n\r\n`;
    if (whole.length + body.length <= ONE_PIECE) {
      const bytes = Buffer.allocUnsafe(whole.length + body.length);
      bytes.write(whole, "latin1");
      body.copy(bytes, whole.length);
      this.#socket.write(bytes);
      return;
    }
    this.#socket.cork();
    this.#socket.write(whole, "latin1");
    this.#socket.write(body);
    this.#socket.uncork();
  }

  /** Answers whether to go on reading. */
  #read(bytes: Buffer): boolean {
    this.#heardAtMs = performance.now();
    // Nobody asked: whatever this is, it must not be taken for the answer to the next request.
    if (this.#listener === undefined || this.#unsent !== undefined)
      this.#break(connectionError("CLOSED", "the other side sent something unasked"));
    else this.#parse(bytes);
    return !this.#isPaused;
  }

  #parse(bytes: Buffer): void {
    try {
      const isAll = this.#parser.read(bytes);
      if (this.#parser.isOver) this.#finish(isAll && !this.#isEarly ? this.#parser.keepAliveMs : 0);
    } catch (error) {
      this.#break(error as Error);
    }
  }

  /** The answer is complete, and the connection may be kept for so long. */
  #finish(keepAliveMs: number): void {
    const listener = this.#listener;
    this.#listener = undefined;
    this.resume();
    if (keepAliveMs > 0) this.#owner.onIdle(this, keepAliveMs);
    else this.destroy();
    listener?.onEnd();
  }

  #onEnd(): void {
    if (this.#listener !== undefined && this.#parser.end()) return this.#finish(0);
    this.#break(connectionError("CLOSED", "the other side has closed the connection"));
  }

  #break(error: Error): void {
    const listener = this.#listener;
    const unsent = this.#connecting === undefined ? this.#unsent : undefined;
    this.destroy();
    if (listener === undefined) return;
    if (unsent === undefined) listener.onError(error);
    else this.#owner.send(unsent, listener);
  }
}
