import type { Socket } from "node:net";
import { type AnswerHeaders, AnswerParser, type AnswerSink } from "./answer-parser.ts";
import type { Dialer } from "./dialer.ts";

/** A POST as it is sent: the head but for the body's length and what follows it. */
export interface WireRequest {
  readonly head: string;
  readonly body: Buffer;
  /** The longest silence between two reads of the answer's body. */
  readonly idleMs: number;
}

/** What hears of a request's answer. After `onEnd` or `onError` it hears nothing more. */
export interface AnswerListener extends AnswerSink {
  /** What the request is on; carries nothing else until its answer is over. Set by whoever sends it, perhaps twice. */
  connection: Connection | undefined;
  onEnd(): void;
  onError(error: Error): void;
}

/** What hears of a connection. */
interface ConnectionOwner {
  /** Its request is over, and it may be used for another one for so long: Infinity when the server has not said. */
  onIdle(connection: Connection, keepAliveMs: number): void;
  /** It broke before anything was written of this request, although it was there already. Called after `onClosed`. */
  onUnsent(request: WireRequest, listener: AnswerListener): void;
  /** It is closed, or about to be: nothing can be sent over it any more. Called once. */
  onClosed(connection: Connection): void;
}

/** How the connection broke, when it was not the system that said so. */
export class ConnectionError extends Error {
  readonly code: "CONNECT_TIMEOUT" | "SILENCE" | "CLOSED";

  constructor(code: ConnectionError["code"], message: string) {
    super(message);
    this.code = code;
  }
}

/** A head and a body up to this length (bytes) are sent as one piece: a copy costs less than a second piece does. */
const ONE_PIECE = 16 * 1024;

/** What all connections read into, one after another: a buffer for each read costs more than all of the parsing. */
const READ_BUFFER = Buffer.allocUnsafeSlow(64 * 1024);

/** One HTTP/1.1 connection to a provider, which takes one request at a time. */
export class Connection implements AnswerSink {
  readonly #owner: ConnectionOwner;
  readonly #socket: Socket;
  readonly #parser = new AnswerParser(this);
  #connecting: NodeJS.Timeout | undefined;
  /**
   * Waits until the connection is made, and with TLS until the server's certificate was found to be good; on one that has
   * been used, until it has been seen that nothing came on it meanwhile, nor its end.
   */
  #unsent: WireRequest | undefined;
  #listener: AnswerListener | undefined;
  #idleMs = 0;
  #isPaused = false;
  #isClosed = false;

  /** Begins to connect. `connectMs` is the time for DNS, TCP and TLS together. */
  constructor(dialer: Dialer, connectMs: number, owner: ConnectionOwner) {
    this.#owner = owner;
    this.#socket = dialer.open({
      buffer: READ_BUFFER,
      callback: (size) => this.#read(size === READ_BUFFER.length ? READ_BUFFER : READ_BUFFER.subarray(0, size)),
    });
    this.#connecting = setTimeout(
      () => this.#break(new ConnectionError("CONNECT_TIMEOUT", `no connection within ${connectMs} ms`)),
      connectMs,
    );
    this.#socket
      .once(dialer.readyEvent, () => this.#begin())
      .on("timeout", () => this.#onSilence())
      .on("end", () => this.#onEnd())
      .on("error", (error) => this.#break(error))
      .once("close", () => this.#break(new ConnectionError("CLOSED", "the connection is closed")));
  }

  /** Sends a request. Only for a connection that has none. */
  send(request: WireRequest, listener: AnswerListener): void {
    this.#listener = listener;
    this.#idleMs = request.idleMs;
    this.#parser.reset();
    this.#unsent = request;
    // Sockets are read between this turn of the event loop and the end of the next.
    if (this.#connecting === undefined) setImmediate(this.#sendUnsent);
  }

  /** Closes itself when no request comes for so long. */
  keep(ms: number): void {
    this.#socket.setTimeout(ms);
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
    // What waits to be read is seen only after timers that are due.
    if (this.#listener !== undefined) this.#socket.setTimeout(this.#idleMs);
    this.#socket.resume();
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

  onHead(status: number, headers: AnswerHeaders): void {
    this.#socket.setTimeout(this.#idleMs);
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
    this.#socket.setTimeout(0);
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
    // Nobody asked: whatever this is, it must not be taken for the answer to the next request.
    if (this.#listener === undefined || this.#unsent !== undefined) this.#break(unasked());
    else this.#parse(bytes);
    return !this.#isPaused;
  }

  #parse(bytes: Buffer): void {
    try {
      const isAll = this.#parser.read(bytes);
      if (this.#parser.isOver) this.#finish(isAll && this.#socket.writableLength === 0 ? this.#parser.keepAliveMs : 0);
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

  #onSilence(): void {
    // Whoever does not read has nobody to blame for it.
    if (this.#isPaused) this.#socket.setTimeout(this.#idleMs);
    else if (this.#listener === undefined) this.destroy();
    else this.#break(new ConnectionError("SILENCE", `nothing came for ${this.#idleMs} ms`));
  }

  #onEnd(): void {
    if (this.#listener !== undefined && this.#parser.end()) return this.#finish(0);
    this.#break(new ConnectionError("CLOSED", "the other side has closed the connection"));
  }

  #break(error: Error): void {
    const listener = this.#listener;
    const unsent = this.#connecting === undefined ? this.#unsent : undefined;
    this.destroy();
    if (listener === undefined) return;
    if (unsent === undefined) listener.onError(error);
    else this.#owner.onUnsent(unsent, listener);
  }
}

const unasked = (): ConnectionError => new ConnectionError("CLOSED", "the other side sent something unasked");
