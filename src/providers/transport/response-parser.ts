import { MAX_INFORMATIONAL, TOO_MANY } from "../../net/informational.ts";
import { ResponseError } from "./response-error.ts";
import { SmallPieces, TINY } from "./small-pieces.ts";

/** Response headers by lower-case name; a list for a repeated name. */
export type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** Receives the parsed parts of a response. */
export interface ResponseSink {
  onHead(status: number, headers: ResponseHeaders): void;
  /** All body bytes of one read, without chunk framing, as a copy that the listener owns. */
  onData(bytes: Buffer): void;
}

/** Limit in bytes of the status line with all headers, and of the trailers. Equals Node's limit for requests. */
const MAX_HEAD = 16 * 1024;
/** Limit in bytes of a chunk size with its extensions. */
const MAX_SIZE_LINE = 1024;
/** Hexadecimal digits of a size within the safe integers. */
const MAX_SIZE_DIGITS = 13;

const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/;
const HEADER_LINE = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):([\t\x20-\x7e\x80-\xff]*)$/;
/**
 * A hexadecimal size within the safe integers, and extensions, which are ignored (RFC 9112, 7.1.1). White space is refused, as by
 * Node's client.
 */
const SIZE_LINE =
  /^([0-9A-Fa-f]{1,13})(?:;[\w!#$%&'*+.^`|~-]+(?:=(?:[\w!#$%&'*+.^`|~-]+|"[\t\x20\x21\x23-\x5b\x5d-\x7e\x80-\xff]*"))?)*$/;
const LENGTH = /^\d{1,15}$/;

const NOTHING = Buffer.alloc(0);
const CR = 13;
const LF = 10;

type Phase = "head" | "sized body" | "body" | "chunk size" | "chunk" | "chunk end" | "trailer" | "over";

/**
 * Parses the responses of one HTTP/1.1 connection in sequence (RFC 9112). Refuses every ambiguous framing, so that no
 * byte of one response is taken for part of the next (response smuggling).
 */
export class ResponseParser {
  readonly #sink: ResponseSink;
  #phase: Phase = "head";
  /** Remaining bytes of the body or chunk. */
  #left = 0;
  #trailerBytes = 0;
  #informational = 0;
  readonly #chunks = new SmallPieces(TINY);
  #isLast = false;
  #keepAliveMs = 0;
  #hasBody = false;
  /** Incomplete input, kept for the next read. */
  #rest = NOTHING;
  /** Body bytes of the current read. */
  #body = NOTHING;
  #bodyBytes = 0;

  constructor(sink: ResponseSink) {
    this.#sink = sink;
  }

  /** Whether the response is complete. */
  get isOver(): boolean {
    return this.#phase === "over";
  }

  /**
   * Time in ms that the connection can be reused for; Infinity if the server names none. 0 unless the response is a 2xx
   * of known length with a body: broken servers and proxies send bodies that the status or headers of other responses rule out.
   */
  get keepAliveMs(): number {
    return this.#hasBody ? this.#keepAliveMs : 0;
  }

  /** Prepares for the next response. */
  reset(): void {
    this.#phase = "head";
    this.#rest = NOTHING;
    this.#informational = 0;
    this.#hasBody = false;
  }

  /**
   * Parses more bytes and calls the sink. The buffer may be reused afterwards. Returns whether all bytes belong to this
   * response. Throws a ResponseError after the sink has received everything before the error.
   */
  read(bytes: Buffer): boolean {
    const input = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    this.#rest = NOTHING;
    let at = 0;
    try {
      while (at < input.length && this.#phase !== "over") {
        const next = this.#step(input, at);
        if (next < 0) {
          this.#rest = Buffer.from(input.subarray(at));
          return true;
        }
        at = next;
      }
      return at === input.length;
    } finally {
      this.#flush();
    }
  }

  /** Called when the connection ends. Returns whether this also ends the response. */
  end(): boolean {
    if (this.#phase === "body") this.#phase = "over";
    return this.#phase === "over";
  }

  /** Parses one element and returns the offset of the next; -1 if the element is incomplete. */
  #step(input: Buffer, at: number): number {
    switch (this.#phase) {
      case "head":
        return this.#readHead(input, at);
      case "chunk size":
        return this.#readChunkSize(input, at);
      case "chunk end":
        if (input.length < at + 2) return -1;
        if (input[at] !== CR || input[at + 1] !== LF) throw new ResponseError("A chunk is longer than its size.");
        this.#phase = "chunk size";
        return at + 2;
      case "trailer":
        return this.#readTrailer(input, at);
      default:
        return this.#readBody(input, at);
    }
  }

  #readHead(input: Buffer, at: number): number {
    const end = input.indexOf("\r\n\r\n", at, "latin1");
    if (end < 0 ? input.length - at > MAX_HEAD : end - at > MAX_HEAD)
      throw new ResponseError(`The headers are longer than ${MAX_HEAD} bytes.`);
    if (end < 0) {
      const begun = input.toString("latin1", at, at + 7);
      if (!"HTTP/1.".startsWith(begun)) throw new ResponseError("The answer does not begin like HTTP/1.1.");
      if (input.includes("\n\n", at)) throw new ResponseError("Lines of the headers end without a carriage return.");
      return -1;
    }
    const lines = input.toString("latin1", at, end).split("\r\n");
    const [, minor, code] = STATUS_LINE.exec(lines[0]!) ?? [];
    if (code === undefined) throw new ResponseError("The status line is none of HTTP/1.1.");
    const headers = readHeaders(lines);
    const status = Number(code);
    if (status < 200) this.#skip(status, headers);
    else this.#begin(status, minor === "1", headers);
    return end + 4;
  }

  /** Checks an informational response (1xx). The final response follows. */
  #skip(status: number, headers: ResponseHeaders): void {
    if (status === 101) throw new ResponseError("The answer changes the protocol, unasked.");
    if (headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined)
      throw new ResponseError("An informational answer says that it has a body.");
    if (++this.#informational > MAX_INFORMATIONAL) throw new ResponseError(TOO_MANY);
    if (status !== 100 && status !== 103) this.#isLast = true;
  }

  /** Determines the body's framing (RFC 9112, 6.3) and whether the connection persists. */
  #begin(status: number, persistent: boolean, headers: ResponseHeaders): void {
    const length = headers["content-length"];
    const coding = headers["transfer-encoding"];
    if (status >= 300 || status === 204 || status === 205) this.#isLast = true;
    this.#keepAliveMs = persistent && !this.#isLast ? readKeepAlive(headers) : 0;
    if (coding !== undefined) {
      if (!persistent || length !== undefined || String(coding).toLowerCase() !== "chunked")
        throw new ResponseError("The headers contradict each other about the body's length.");
      this.#phase = "chunk size";
    } else if (length !== undefined) {
      if (typeof length !== "string" || !LENGTH.test(length))
        throw new ResponseError("The content-length is not one number.");
      this.#left = Number(length);
      this.#phase = this.#left === 0 ? "over" : "sized body";
    } else {
      this.#phase = "body";
    }
    if (status === 204 || status === 304) this.#phase = "over";
    // The body ends with the connection.
    if (this.#phase === "body") this.#keepAliveMs = 0;
    this.#sink.onHead(status, headers);
  }

  #readBody(input: Buffer, at: number): number {
    const end = this.#phase === "body" ? input.length : Math.min(input.length, at + this.#left);
    this.#hasBody = true;
    if (this.#bodyBytes === 0) this.#body = Buffer.allocUnsafe(input.length - at);
    this.#bodyBytes += input.copy(this.#body, this.#bodyBytes, at, end);
    if (this.#phase === "body") return end;
    this.#left -= end - at;
    if (this.#left === 0) this.#phase = this.#phase === "chunk" ? "chunk end" : "over";
    return end;
  }

  /** Reads a chunk size. A size without extensions is read directly from its bytes, for speed: a stream has a chunk per event. */
  #readChunkSize(input: Buffer, at: number): number {
    let size = 0;
    let end = at;
    for (let digit; end - at < MAX_SIZE_DIGITS && (digit = hexDigit(input[end])) >= 0; end++) size = size * 16 + digit;
    if (end > at && input[end] === CR && input[end + 1] === LF) return this.#beginChunk(size, end + 2);
    const line = readLine(input, at, MAX_SIZE_LINE);
    if (line === undefined) return -1;
    const digits = SIZE_LINE.exec(line)?.[1];
    if (digits === undefined) throw new ResponseError("The size of a chunk is not a number.");
    return this.#beginChunk(Number.parseInt(digits, 16), at + line.length + 2);
  }

  /** Returns `at`, where the chunk's data begin. */
  #beginChunk(size: number, at: number): number {
    this.#chunks.add(size);
    this.#left = size;
    this.#phase = size === 0 ? "trailer" : "chunk";
    this.#trailerBytes = 0;
    return at;
  }

  #readTrailer(input: Buffer, at: number): number {
    const line = readLine(input, at, MAX_HEAD - this.#trailerBytes);
    if (line === undefined) return -1;
    this.#trailerBytes += line.length + 2;
    if (line.length === 0) this.#phase = "over";
    else if (!HEADER_LINE.test(line)) throw new ResponseError("A trailer is not a header.");
    return at + line.length + 2;
  }

  #flush(): void {
    if (this.#bodyBytes === 0) return;
    const whole = this.#body.subarray(0, this.#bodyBytes);
    // If most of the read was framing, a copy releases the large buffer, which size limits do not count.
    const body = this.#bodyBytes * 2 < this.#body.length ? Buffer.from(whole) : whole;
    this.#body = NOTHING;
    this.#bodyBytes = 0;
    this.#sink.onData(body);
  }
}

/** Value of a hexadecimal digit; -1 for another byte, or none. */
function hexDigit(byte = 0): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

/** Returns one line without CRLF; undefined if it is incomplete. */
function readLine(input: Buffer, at: number, max: number): string | undefined {
  const end = input.indexOf(LF, at);
  if ((end < 0 ? input.length : end) - at > max) throw new ResponseError("A line between chunks is too long.");
  if (end < 0) return undefined;
  if (end === at || input[end - 1] !== CR)
    throw new ResponseError("A line between chunks ends without a carriage return.");
  return input.toString("latin1", at, end - 1);
}

/** Parses header lines; the first line is the status line. */
function readHeaders(lines: readonly string[]): ResponseHeaders {
  const headers: Record<string, string | string[]> = {};
  for (let index = 1; index < lines.length; index++) {
    const [, name, text] = HEADER_LINE.exec(lines[index]!) ?? [];
    if (name === undefined) throw new ResponseError("A line of the headers is not one.");
    const key = name.toLowerCase();
    const value = trimmed(text!);
    // `hasOwn`: a header may be named like a property of Object.prototype.
    const before = Object.hasOwn(headers, key) ? headers[key] : undefined;
    if (before === undefined) headers[key] = value;
    else if (typeof before === "string") headers[key] = [before, value];
    else before.push(value);
  }
  return headers;
}

/** Trims spaces and tabs only: a length with other white space is invalid. */
function trimmed(text: string): string {
  let [from, to] = [0, text.length];
  while (from < to && isSpace(text.charCodeAt(from))) from += 1;
  while (from < to && isSpace(text.charCodeAt(to - 1))) to -= 1;
  return text.slice(from, to);
}

const isSpace = (code: number): boolean => code === 32 || code === 9;

/** Reads `Connection: close` and `Keep-Alive: timeout=5` (seconds; sent by Apache and Node). */
function readKeepAlive(headers: ResponseHeaders): number {
  const connection = headers["connection"];
  if (connection !== undefined && /(?:^|[,\s])close(?:$|[,\s])/i.test(String(connection))) return 0;
  const hint = headers["keep-alive"];
  const seconds = hint === undefined ? undefined : /(?:^|[,;\s])timeout=(\d{1,9})/i.exec(String(hint))?.[1];
  return seconds === undefined ? Infinity : Number(seconds) * 1000;
}
