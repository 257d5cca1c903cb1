import type { Socket } from "node:net";
import { type ResponseHeaders, ResponseParser, type ResponseSink } from "./response-parser.ts";
import type { Dialer } from "./dialer.ts";
import { TlsRecords } from "./tls-records.ts";

/** A request ready to send. */
export interface WireRequest<Head = string> {
  /** HTTP/1.1: the text of the head without `content-length` and the final empty line. HTTP/2: the fields. */
  readonly head: Head;
  readonly body: Buffer;
  /** Longest silence in ms between two reads of the response body. */
  readonly idleMs: number;
  /** Fair-queue key while the request waits for a connection. */
  readonly key: string;
  /** Only requests of the same pool share connections. */
  readonly pool: string;
}

/** Holder of a request: a connection, a stream of one, or the queue for one. */
export interface Carrier {
  /** Stops reading, so that back-pressure stalls the server. Bytes already read are still delivered. */
  pause(): void;
  resume(): void;
  /** Ends the exchange, even in flight. The listener is not called again. */
  destroy(): void;
}

/** The connections to one origin. */
export interface RequestSender<Head> {
  send(request: WireRequest<Head>, listener: ResponseListener): void;
  /** Closes idle connections at once and busy ones after their requests. Resolves when all are closed. */
  close(): Promise<void>;
}

/** Receives the response of one request. Nothing is called after `onEnd` or `onError`. */
export interface ResponseListener extends Pick<ResponseSink, "onData"> {
  /** Exclusive until the response ends. Set by the pool, more than once if the request was queued. */
  connection: Carrier | undefined;
  /** `isWritten`: whether the system had taken over the whole request before; false where that is not known. */
  onHead(status: number, headers: ResponseHeaders, isWritten: boolean): void;
  /** Called just before the request is written. From then on the server may have received it. */
  onSent(): void;
  /** Called after `onSent` when the server has not processed the request. */
  onUnsent(): void;
  onEnd(): void;
  onError(error: Error): void;
}

/** Receives the events of a connection. */
interface ConnectionOwner {
  /** Time limit in ms for DNS, TCP and TLS together. */
  readonly connectMs: number;
  /** Its request has ended. The connection can be reused for `keepAliveMs`; Infinity if the server names no limit. */
  onIdle(connection: Connection, keepAliveMs: number): void;
  /** The connection broke before any byte of this request was written: send it on another one. Called after `onClosed`. */
  send(request: WireRequest, listener: ResponseListener): void;
  /** The connection is closed or closing and takes no further request. Called once. */
  onClosed(connection: Connection): void;
}

/** An error that this module detected itself, not the operating system. `toTransportFailure` maps the codes. */
export function connectionError(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}

/** The error of a request for which no connection may be opened, with the operating system's code. */
export function noDescriptor(): Error {
  return connectionError("EMFILE", "the limit of open files leaves no further connection to a provider");
}

/** A head and body of up to this many bytes are written at once: the copy costs less than a second write. */
const ONE_PIECE = 16 * 1024;

/** Read buffer shared by all connections: allocating one for each read costs more than parsing. */
const READ_BUFFER = Buffer.allocUnsafeSlow(64 * 1024);

/** One HTTP/1.1 connection to a provider. It connects at once and carries one request at a time. */
export class Connection implements ResponseSink, Carrier {
  readonly pool: string;
  /** Times of the monotonic clock. The owner sets when the connection became free and when to close it if still free. */
  readonly openedAtMs = performance.now();
  freeAtMs = 0;
  closeAtMs = Infinity;
  /** Number of requests carried, and time to the first byte of the last response. */
  requests = 0;
  beginMs = 0;
  readonly #owner: ConnectionOwner;
  readonly #socket: Socket;
  readonly #parser = new ResponseParser(this);
  #connecting: NodeJS.Timeout | undefined;
  /**
   * Held back until the connection is established, with TLS until the certificate is verified. On a reused connection
   * it is held back until a read has shown that no stray bytes and no FIN arrived meanwhile.
   */
  #unsent: WireRequest | undefined;
  #listener: ResponseListener | undefined;
  #idleMs = 0;
  #writtenAtMs = 0;
  /** Time of the last read or resume. */
  #heardAtMs = 0;
  /** Whether the response began before the request was fully written: it may then belong to an earlier request. */
  #isEarly = false;
  #hasBegun = false;
  #isPaused = false;
  #isClosed = false;
  /** Undefined before the handshake is finished, and without TLS. */
  #records: TlsRecords | undefined;

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

  /** Sends a request. The connection must be free. */
  send(request: WireRequest, listener: ResponseListener): void {
    this.#listener = listener;
    this.#hasBegun = false;
    this.#idleMs = request.idleMs;
    this.requests += 1;
    this.#parser.reset();
    this.#unsent = request;
    // The event loop polls sockets before this immediate runs, so stray bytes are seen first.
    if (this.#connecting === undefined) setImmediate(this.#sendUnsent);
  }

  get isFree(): boolean {
    return this.#listener === undefined;
  }

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
   * Breaks if the server has been silent within a response for longer than `idleMs`. The owner calls this after the
   * event loop has polled sockets: one timer per connection, reset on each read, costs more than parsing.
   */
  breakIfSilent(nowMs: number): void {
    if (this.#listener === undefined || !this.#hasBegun || this.#isPaused) return;
    if (nowMs - this.#heardAtMs > this.#idleMs)
      this.#break(connectionError("SILENCE", `no bytes received for ${this.#idleMs} ms`));
  }

  /** Breaks if the server has sent more TLS records without data than a connection may have. `elapsedMs`: since the last call. */
  breakIfFlooded(elapsedMs: number): void {
    try {
      this.#records?.check(elapsedMs);
    } catch (error) {
      this.#break(error as Error);
    }
  }

  /** Closes the connection, even with a request in flight. The listener is not called again. */
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
    this.#listener?.onHead(status, headers, !this.#isEarly);
  }

  onData(bytes: Buffer): void {
    this.#listener?.onData(bytes);
  }

  #begin(): void {
    clearTimeout(this.#connecting);
    this.#connecting = undefined;
    this.#records = TlsRecords.of(this.#socket);
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

  /** Returns whether to continue reading. */
  #read(bytes: Buffer): boolean {
    this.#heardAtMs = performance.now();
    // No request is in flight: these bytes must not be taken for the response to the next request.
    if (this.#listener === undefined || this.#unsent !== undefined)
      this.#break(connectionError("CLOSED", "the server sent bytes without a request"));
    else this.#parse(bytes);
    return !this.#isPaused;
  }

  #parse(bytes: Buffer): void {
    try {
      const isAll = this.#parser.read(bytes);
      // The listener may have closed the connection while these bytes were read: it must not return to the pool.
      if (this.#parser.isOver && !this.#isClosed) this.#finish(isAll && !this.#isEarly ? this.#parser.keepAliveMs : 0);
    } catch (error) {
      this.#break(error as Error);
    }
  }

  /** Ends the exchange. The connection can be reused for `keepAliveMs`; 0 closes it. */
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
    this.#break(connectionError("CLOSED", "the server closed the connection"));
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
