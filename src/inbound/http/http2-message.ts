import {
  constants,
  Http2ServerRequest,
  Http2ServerResponse,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from "node:http2";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Readable, Stream } from "node:stream";

/** Node's request of its compatibility API. An interface, as its properties are accessors, which subclasses replace. */
interface NodeRequest extends Readable {
  readonly stream: ServerHttp2Stream;
  readonly complete: boolean;
  readonly method: string;
  readonly socket: object;
}
const NodeRequest = Http2ServerRequest as unknown as new (
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  options: undefined,
  rawHeaders: readonly string[],
) => NodeRequest;

interface NodeResponse extends Stream {
  readonly stream: ServerHttp2Stream;
  readonly req: NodeRequest;
  readonly writableEnded: boolean;
  readonly writableFinished: boolean;
  readonly socket: object | null;
  writeHead(status: number, headers?: HeadersOfHead): this;
  write(chunk: unknown, ...more: unknown[]): boolean;
  end(...given: unknown[]): this;
  destroy(): void;
}
const NodeResponse = Http2ServerResponse as unknown as new (stream: ServerHttp2Stream) => NodeResponse;

type HeadersOfHead = readonly string[] | Readonly<Record<string, unknown>>;

/** A request and its response of HTTP/2, as handlers of HTTP/1.1 take them. */
export function messagesOf(
  stream: ServerHttp2Stream,
  {
    headers,
    rawHeaders,
    connection,
  }: { headers: IncomingHttpHeaders; rawHeaders: readonly string[]; connection: Socket },
): { readonly request: IncomingMessage; readonly response: ServerResponse } {
  const socket = new StreamSocket(stream, connection);
  const request = new Http2Request(stream, { headers, rawHeaders, socket });
  const response = new Http2Response(stream, socket);
  return { request: request as unknown as IncomingMessage, response: response as unknown as ServerResponse };
}

/**
 * A request of HTTP/2 with the headers of HTTP/1.1, without pseudo-headers: `host` is the authority, and `transfer-encoding` says
 * that a body has no declared length.
 */
class Http2Request extends NodeRequest {
  readonly #socket: StreamSocket;

  constructor(
    stream: ServerHttp2Stream,
    given: {
      readonly headers: IncomingHttpHeaders;
      readonly rawHeaders: readonly string[];
      readonly socket: StreamSocket;
    },
  ) {
    const rawHeaders = toRawHeaders(given.rawHeaders);
    const headers = toHeaders(given.headers);
    if (!stream.endAfterHeaders && headers["content-length"] === undefined) headers["transfer-encoding"] = "chunked";
    super(stream, headers, undefined, rawHeaders);
    this.#socket = given.socket;
    // The response's listener comes after it, and before the error.
    stream.once("close", () => this.#closed());
  }

  /** Whether all of it has been read. Node's is also true for one that was cut off. */
  override get complete(): boolean {
    return this.stream.endAfterHeaders || this.stream.readableEnded;
  }

  override get socket(): StreamSocket {
    return this.#socket;
  }

  get #isCut(): boolean {
    return this.stream.aborted || !this.complete;
  }

  /** Node ends the request also when its stream was reset. */
  override push(piece: Buffer | null): boolean {
    return piece === null && this.#isCut ? false : super.push(piece);
  }

  /** As over HTTP/1.1, a request that is cut off has an error for its reader, and no end. */
  #closed(): void {
    if (!this.#isCut) return;
    this.destroy();
    // Most readers learn of it from the response, which closes in this turn.
    process.nextTick(() => {
      if (this.listenerCount("error") > 0)
        this.emit("error", new Error("the stream was closed before the end of the request"));
    });
  }
}

/** A response of HTTP/2. Headers of HTTP/1.1's connection are left out. */
class Http2Response extends NodeResponse {
  readonly #socket: StreamSocket;

  constructor(stream: ServerHttp2Stream, socket: StreamSocket) {
    super(stream);
    this.#socket = socket;
    endWithData(stream);
    if (this.req.method === "HEAD") this.#closeWith(stream);
  }

  /** Node emits no `close` for a response to HEAD that has not ended when its stream closes: its call would never end. */
  #closeWith(stream: ServerHttp2Stream): void {
    let hasClosed = false;
    this.once("close", () => (hasClosed = true));
    // After the listener of Node's response.
    stream.once("close", () => hasClosed || this.emit("close"));
  }

  /** Whether the stream was closed before all of the response was sent. */
  get destroyed(): boolean {
    return this.closed && !this.writableFinished;
  }

  get closed(): boolean {
    return this.stream.destroyed || this.stream.closed;
  }

  /** Node's is also true for a response that was ended by a reset of the stream. */
  override get writableFinished(): boolean {
    return this.writableEnded && this.stream.writableFinished && !this.stream.aborted;
  }

  get writableNeedDrain(): boolean {
    return this.stream.writableNeedDrain;
  }

  override get socket(): StreamSocket {
    return this.#socket;
  }

  override writeHead(status: number, headers: HeadersOfHead = []): this {
    return super.writeHead(status, withoutConnection(headers));
  }

  override write(chunk: unknown, ...more: unknown[]): boolean {
    // Node would treat the body of a response to HEAD as an error of the stream.
    return this.req.method === "HEAD" || super.write(chunk, ...more);
  }

  /** Also reads and drops the rest of the request, until the guard closes the stream. */
  override end(...given: unknown[]): this {
    super.end(...given);
    if (!this.req.complete && !this.req.destroyed) this.req.resume();
    return this;
  }

  /** Resets the stream, so that the response does not look complete. */
  override destroy(): void {
    if (!this.closed) this.stream.close(constants.NGHTTP2_INTERNAL_ERROR);
  }
}

/**
 * Ends the stream with the last frame of its body: no response has trailers, for which Node's response always waits. HAProxy holds a
 * response whose end comes in a frame of its own for 200 ms.
 */
function endWithData(stream: ServerHttp2Stream): void {
  const respond = stream.respond.bind(stream);
  stream.respond = (headers, options) => respond(headers, { ...options, waitForTrailers: false });
}

/**
 * What handlers use of a connection's socket, for one stream: other streams go on. Time limits of unread answers are those of the
 * stream's guard.
 */
class StreamSocket {
  readonly #stream: ServerHttp2Stream;
  readonly #connection: Socket;

  constructor(stream: ServerHttp2Stream, connection: Socket) {
    this.#stream = stream;
    this.#connection = connection;
  }

  get remoteAddress(): string | undefined {
    return this.#connection.remoteAddress;
  }

  get destroyed(): boolean {
    return this.#stream.destroyed;
  }

  get writableNeedDrain(): boolean {
    return this.#stream.writableNeedDrain;
  }

  setTimeout(): this {
    return this;
  }
}

function toHeaders(given: IncomingHttpHeaders): IncomingHttpHeaders {
  // Node's request finds method and path there; readers of all headers do not.
  const own = {
    ":method": { value: given[":method"] },
    ":path": { value: given[":path"] },
  };
  const headers = Object.create(null, own) as IncomingHttpHeaders;
  for (const name in given) if (!name.startsWith(":")) headers[name] = given[name];
  headers.host = given[":authority"] ?? given.host;
  return headers;
}

/** Also refused by `refuseAmbiguous`: a `host` that differs from the authority. */
function toRawHeaders(given: readonly string[]): string[] {
  const at = given.indexOf(":authority");
  const authority = at < 0 ? undefined : given[at + 1];
  const raw = authority === undefined ? [] : ["host", authority];
  for (let index = 0; index < given.length; index += 2) {
    const [name, value] = [given[index]!, given[index + 1]!];
    if (!name.startsWith(":") && !(name === "host" && value === authority)) raw.push(name, value);
  }
  return raw;
}

function withoutConnection(headers: HeadersOfHead): HeadersOfHead {
  if (!Array.isArray(headers)) {
    const { connection: _, ...rest } = headers as Readonly<Record<string, unknown>>;
    return rest;
  }
  const list = headers as readonly string[];
  const at = list.findIndex((text, index) => index % 2 === 0 && text === "connection");
  return at < 0 ? list : [...list.slice(0, at), ...list.slice(at + 2)];
}
