/** The headers of an answer by their names in lower case; a list for a name that came more than once. */
export type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** What hears of an answer while it is read. */
export interface ResponseSink {
  onHead(status: number, headers: ResponseHeaders): void;
  /** Some of the body, as a copy that is the listener's own; of one read all that is in it, without the framing of chunks. */
  onData(bytes: Buffer): void;
}

/** An answer that is not HTTP/1.1, or that says two things about its own length. */
export class ResponseError extends Error {}

/** The status line with all headers may be so long, in bytes, and the trailers too. What Node reads of a request. */
const MAX_HEAD = 16 * 1024;
/** A chunk's size with its extensions may be so long, in bytes. */
const MAX_SIZE_LINE = 1024;
const MAX_INFORMATIONAL = 16;

const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/;
const HEADER_LINE = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):([\t\x20-\x7e\x80-\xff]*)$/;
/** The size in hexadecimal digits, no more than a number can hold, and extensions that nobody reads. */
const SIZE_LINE = /^([0-9A-Fa-f]{1,13})[ \t]*(?:;[\t\x20-\x7e\x80-\xff]*)?$/;
const LENGTH = /^\d{1,15}$/;

const NOTHING = Buffer.alloc(0);
const CR = 13;
const LF = 10;

type Phase = "head" | "sized body" | "body" | "chunk size" | "chunk" | "chunk end" | "trailer" | "over";

/**
 * Reads the answers of one HTTP/1.1 connection, one after another (RFC 9112). Strict: what two readers could take for two
 * different things is refused, so that nothing of one answer is ever taken for the next one's.
 */
export class ResponseParser {
  readonly #sink: ResponseSink;
  #phase: Phase = "head";
  /** How many bytes of the body or of the chunk are to come. */
  #left = 0;
  #trailerBytes = 0;
  #informational = 0;
  #isLast = false;
  #keepAliveMs = 0;
  /** The beginning of something that is not all there. */
  #rest = NOTHING;
  /** Of the body, from the present read. */
  #body = NOTHING;
  #bodyBytes = 0;

  constructor(sink: ResponseSink) {
    this.#sink = sink;
  }

  /** Whether the answer is complete. */
  get isOver(): boolean {
    return this.#phase === "over";
  }

  /**
   * How long the connection may be kept after this answer, Infinity when it does not say. 0 after all but a 2xx whose length
   * is certain: broken servers and proxies send bodies after other ones that their status or headers deny.
   */
  get keepAliveMs(): number {
    return this.#keepAliveMs;
  }

  /** Begins the next answer. */
  reset(): void {
    this.#phase = "head";
    this.#rest = NOTHING;
    this.#informational = 0;
  }

  /**
   * Reads on, and tells the sink. The bytes may be written over afterwards. Answers whether all of them were of this answer.
   * Throws an ResponseError, after the sink has heard of what came before the mistake.
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

  /** The connection has ended: answers whether that is the end of the answer, too. */
  end(): boolean {
    if (this.#phase === "body") this.#phase = "over";
    return this.#phase === "over";
  }

  /** Reads one part of the answer, and answers where the next one begins: -1 when not all of this one is there. */
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

  /** Checks an informational answer; the answer itself is to come. */
  #skip(status: number, headers: ResponseHeaders): void {
    if (status === 101) throw new ResponseError("The answer changes the protocol, unasked.");
    if (headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined)
      throw new ResponseError("An informational answer says that it has a body.");
    if (++this.#informational > MAX_INFORMATIONAL)
      throw new ResponseError(`There are more than ${MAX_INFORMATIONAL} informational answers.`);
    if (status !== 100 && status !== 103) this.#isLast = true;
  }

  /** How the body is framed (RFC 9112, 6.3), and whether the connection outlives it. */
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
    // Its end is the connection's.
    if (this.#phase === "body") this.#keepAliveMs = 0;
    this.#sink.onHead(status, headers);
  }

  #readBody(input: Buffer, at: number): number {
    const end = this.#phase === "body" ? input.length : Math.min(input.length, at + this.#left);
    if (this.#bodyBytes === 0) this.#body = Buffer.allocUnsafe(input.length - at);
    this.#bodyBytes += input.copy(this.#body, this.#bodyBytes, at, end);
    if (this.#phase === "body") return end;
    this.#left -= end - at;
    if (this.#left === 0) this.#phase = this.#phase === "chunk" ? "chunk end" : "over";
    return end;
  }

  #readChunkSize(input: Buffer, at: number): number {
    const line = readLine(input, at, MAX_SIZE_LINE);
    if (line === undefined) return -1;
    const size = SIZE_LINE.exec(line)?.[1];
    if (size === undefined) throw new ResponseError("The size of a chunk is not a number.");
    this.#left = Number.parseInt(size, 16);
    this.#phase = this.#left === 0 ? "trailer" : "chunk";
    this.#trailerBytes = 0;
    return at + line.length + 2;
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
    // What is mostly framing would keep much more in memory than anybody counts.
    const body = this.#bodyBytes * 2 < this.#body.length ? Buffer.from(whole) : whole;
    this.#body = NOTHING;
    this.#bodyBytes = 0;
    this.#sink.onData(body);
  }
}

/** One line without its end; undefined when not all of it is there. */
function readLine(input: Buffer, at: number, max: number): string | undefined {
  const end = input.indexOf(LF, at);
  if ((end < 0 ? input.length : end) - at > max) throw new ResponseError("A line between chunks is too long.");
  if (end < 0) return undefined;
  if (end === at || input[end - 1] !== CR)
    throw new ResponseError("A line between chunks ends without a carriage return.");
  return input.toString("latin1", at, end - 1);
}

/** The headers of these lines, of which the first is the status line. */
function readHeaders(lines: readonly string[]): ResponseHeaders {
  const headers: Record<string, string | string[]> = {};
  for (let index = 1; index < lines.length; index++) {
    const [, name, text] = HEADER_LINE.exec(lines[index]!) ?? [];
    if (name === undefined) throw new ResponseError("A line of the headers is not one.");
    const key = name.toLowerCase();
    const value = trimmed(text!);
    // An own property even when it is called like one that every object has.
    const before = Object.hasOwn(headers, key) ? headers[key] : undefined;
    if (before === undefined) headers[key] = value;
    else if (typeof before === "string") headers[key] = [before, value];
    else before.push(value);
  }
  return headers;
}

/** Without the spaces and tabs around it, and no other white space: a length with another one is none. */
function trimmed(text: string): string {
  let [from, to] = [0, text.length];
  while (from < to && isSpace(text.charCodeAt(from))) from += 1;
  while (from < to && isSpace(text.charCodeAt(to - 1))) to -= 1;
  return text.slice(from, to);
}

const isSpace = (code: number): boolean => code === 32 || code === 9;

/** What the server says about keeping the connection: `Connection: close`, and `Keep-Alive: timeout=5` (seconds; Apache, Node). */
function readKeepAlive(headers: ResponseHeaders): number {
  const connection = headers["connection"];
  if (connection !== undefined && /(?:^|[,\s])close(?:$|[,\s])/i.test(String(connection))) return 0;
  const hint = headers["keep-alive"];
  const seconds = hint === undefined ? undefined : /(?:^|[,;\s])timeout=(\d{1,9})/i.exec(String(hint))?.[1];
  return seconds === undefined ? Infinity : Number(seconds) * 1000;
}
