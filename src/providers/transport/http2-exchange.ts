import { type ClientHttp2Session, type ClientHttp2Stream, constants, type OutgoingHttpHeaders } from "node:http2";
import { MAX_INFORMATIONAL, TOO_MANY } from "../../net/informational.ts";
import { type Carrier, connectionError, type ResponseListener, type WireRequest } from "./connection.ts";
import { ResponseError } from "./response-error.ts";

/** The connection of an exchange. */
interface Http2Owner {
  /** The exchange has ended. Called once. */
  onEnded(exchange: Http2Exchange): void;
  /** A piece of the response's body has arrived. */
  onPiece(bytes: number): void;
  /** The server exceeds a limit, so the connection must close. */
  onAbuse(error: ResponseError): void;
  /** The server has not processed the request (RFC 9113, 8.7): send it on another connection. Called after `onEnded`. */
  resend(request: WireRequest<OutgoingHttpHeaders>, listener: ResponseListener): void;
}

/** Requests that a server has refused unprocessed. A second refusal of one is an error. */
const refused = new WeakSet<WireRequest<OutgoingHttpHeaders>>();

/** One request and its response on one stream of HTTP/2. */
export class Http2Exchange implements Carrier {
  readonly request: WireRequest<OutgoingHttpHeaders>;
  readonly listener: ResponseListener;
  readonly #owner: Http2Owner;
  #stream: ClientHttp2Stream | undefined;
  #hasEnded = false;
  #isPaused = false;
  /** Whether the whole response has arrived; set when the connection checks. */
  #isComplete = false;
  /** Time of the last bytes or resume; undefined before the response begins. */
  #heardAtMs: number | undefined;
  #informational = 0;
  /** Missing bytes of the body by `content-length`; undefined without that header. */
  #awaited: number | undefined;

  constructor(request: WireRequest<OutgoingHttpHeaders>, listener: ResponseListener, owner: Http2Owner) {
    this.request = request;
    this.listener = listener;
    this.#owner = owner;
  }

  start(session: ClientHttp2Session): void {
    const { head, body } = this.request;
    let stream: ClientHttp2Stream;
    try {
      const length = body.length > 0 ? { "content-length": body.length } : {};
      stream = session.request({ ...head, ...length }, { endStream: body.length === 0 });
    } catch (error) {
      // The session has ended; its event follows later.
      return this.#refuse(error as Error);
    }
    this.#stream = stream;
    this.listener.onSent();
    stream
      .on("headers", () => this.#skip())
      .once("response", ({ ":status": status = 0, ...headers }) => {
        this.#heardAtMs = performance.now();
        const length = headers["content-length"];
        this.#awaited = length === undefined ? undefined : Number(length);
        if (!this.#hasEnded) this.listener.onHead(status, headers, false);
        // Reads only from here on, because Node reports the head a tick later than bytes that arrived with it.
        stream.on("data", (bytes: Buffer) => this.#read(bytes)).once("end", () => this.#finish(stream));
        if (this.#isPaused) stream.pause();
      })
      .on("error", (error: Error) => this.#break(error))
      .on("close", () => this.#break(connectionError("CLOSED", "the server reset the stream")));
    if (body.length > 0) stream.end(body);
  }

  /** Reads a complete response to its end, so that the end of the connection cannot cut it. */
  collect(): void {
    const stream = this.#stream;
    if (!this.#isPaused || stream === undefined) return;
    this.#isComplete ||= stream.closed || stream.state.state === constants.NGHTTP2_STREAM_STATE_HALF_CLOSED_REMOTE;
    if (this.#isComplete) stream.resume();
  }

  pause(): void {
    this.#isPaused = true;
    if (!this.#isComplete) this.#stream?.pause();
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    if (this.#heardAtMs !== undefined) this.#heardAtMs = performance.now();
    this.#stream?.resume();
  }

  destroy(): void {
    if (!this.#end()) return;
    this.#stream?.close(constants.NGHTTP2_CANCEL);
    this.#stream?.destroy();
  }

  /** Ends the exchange with an error. */
  fail(error: Error): void {
    if (!this.#end()) return;
    this.#stream?.destroy();
    this.listener.onError(error);
  }

  /** Fails if the server has been silent within a response for longer than the request allows. */
  failIfSilent(nowMs: number): void {
    const { idleMs } = this.request;
    if (this.#heardAtMs === undefined || this.#isPaused || nowMs - this.#heardAtMs <= idleMs) return;
    const error = connectionError("SILENCE", `no bytes received for ${idleMs} ms`);
    if (!this.#end()) return;
    this.#stream?.close(constants.NGHTTP2_CANCEL);
    this.listener.onError(error);
  }

  /** Counts an informational response. */
  #skip(): void {
    if (++this.#informational > MAX_INFORMATIONAL) this.#owner.onAbuse(new ResponseError(TOO_MANY));
  }

  #read(bytes: Buffer): void {
    this.#heardAtMs = performance.now();
    this.#owner.onPiece(bytes.length);
    if (this.#awaited !== undefined) this.#awaited -= bytes.length;
    if (!this.#hasEnded) this.listener.onData(bytes);
  }

  /** Node reports a stream that the server reset without an error as ended. */
  #finish(stream: ClientHttp2Stream): void {
    if (stream.rstCode !== constants.NGHTTP2_NO_ERROR || (this.#awaited ?? 0) !== 0)
      return this.#break(connectionError("CLOSED", "the response ended before its length"));
    // The server answered without reading the whole request body; the open stream would count against the connection's limit.
    if (!stream.writableFinished) stream.close(constants.NGHTTP2_CANCEL);
    if (this.#end()) this.listener.onEnd();
  }

  #break(error: Error): void {
    if (this.#heardAtMs === undefined && this.#stream?.rstCode === constants.NGHTTP2_REFUSED_STREAM)
      return this.#refuse(error);
    if (this.#end()) this.listener.onError(error);
  }

  /** Handles a request that the server did not process. */
  #refuse(error: Error): void {
    if (!this.#end()) return;
    this.listener.onUnsent();
    if (refused.has(this.request)) return this.listener.onError(error);
    refused.add(this.request);
    this.#owner.resend(this.request, this.listener);
  }

  /** Returns whether the exchange had not ended before. */
  #end(): boolean {
    if (this.#hasEnded) return false;
    this.#hasEnded = true;
    this.#owner.onEnded(this);
    return true;
  }
}
