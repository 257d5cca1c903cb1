import { Failure } from "../../core/failure.ts";
import { type JsonSize, MAX_EVENT_JSON } from "../../encoding/json-size.ts";
import { Pieces } from "../../encoding/pieces.ts";
import { MAX_RESPONSE_BYTES } from "../transport/http.ts";
import { parseExactly } from "../../encoding/exact-json.ts";
import { isTooComplex } from "./json.ts";
import { tooComplex, unreadable } from "./response-failure.ts";

/** One server-sent event: its type (empty if absent) and its data, lines joined by a line feed. */
export interface SseEvent {
  readonly event: string;
  readonly data: string;
}

const LF = 10;
const SPACE = 32;
const CR = 13;
const ASCII = 0x7f;
/** Characters of an unfinished line from which its bytes are kept undecoded, outside of V8's heap. */
const LONG_LINE = 64 * 1024;
/** Memory of a line beside its characters, which is counted as further characters. */
const LINE_BYTES = 32;
const BYTE_ORDER_MARK = 0xfeff;

/**
 * Splits the bytes of one `text/event-stream` into events by the WHATWG standard: CR, LF and CRLF end a line, a
 * blank line ends an event, comments and unknown fields are ignored, a byte order mark is dropped. Bytes may be split
 * anywhere. A line may be as long as a response (a picture is one line of many megabytes), so pieces of an unfinished
 * line are joined only once, and those of a long one are decoded only then.
 */
export class SseParser {
  // `ignoreBOM` keeps byte order marks and this class drops the first: Node also drops a second one if the first came alone.
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  #begun = false;
  #pieces: string[] = [];
  /** The bytes of a long line. */
  #long: Pieces | undefined;
  /** Part of `#size` that counts the long line. */
  #longBytes = 0;
  #size = 0;
  #event = "";
  /** The first line of data, and further ones, which hardly any provider sends. */
  #data: string | undefined;
  #more: string[] | undefined;
  #afterCr = false;

  /** Returns the events that these bytes complete. Throws `upstream_protocol` for one beyond MAX_RESPONSE_BYTES. */
  push(bytes: Uint8Array): SseEvent[] {
    const out: SseEvent[] = [];
    if (this.#long === undefined) this.#take(this.#decoder.decode(bytes, { stream: true }), out);
    else this.#pushLong(this.#long, bytes, out);
    // Only after an ASCII byte: otherwise the decoder may hold the beginning of a character.
    if (this.#size > LONG_LINE && this.#pieces.length > 0 && (bytes.at(-1) ?? 0) <= ASCII) this.#keepBytes();
    return out;
  }

  /** Bytes, or characters, of the event that has begun. */
  get unfinishedBytes(): number {
    return this.#size;
  }

  /** At the end of the stream: returns the event that lacked its blank line, if any. */
  end(): SseEvent[] {
    const out: SseEvent[] = [];
    if (this.#long !== undefined) this.#endLong(this.#long);
    this.#take(this.#decoder.decode(), out);
    if (this.#pieces.length > 0) this.#line(this.#join(""));
    this.#dispatch(out);
    return out;
  }

  #pushLong(line: Pieces, given: Uint8Array, out: SseEvent[]): void {
    const bytes = Buffer.from(given.buffer, given.byteOffset, given.byteLength);
    const end = endOfLine(bytes);
    line.add(end < 0 ? bytes : bytes.subarray(0, end));
    if (end < 0) return this.#growLong(bytes.length);
    this.#endLong(line);
    this.#take(this.#decoder.decode(bytes.subarray(end), { stream: true }), out);
  }

  #growLong(bytes: number): void {
    this.#longBytes += bytes;
    this.#grow(bytes);
  }

  /** Makes the line one piece again. Its text is outside of V8's heap if it is long and ASCII. */
  #endLong(line: Pieces): void {
    this.#size -= this.#longBytes;
    this.#longBytes = 0;
    this.#long = undefined;
    this.#keep(line.joined().toString("utf8"));
  }

  #keepBytes(): void {
    this.#long = new Pieces();
    for (const piece of this.#pieces) {
      this.#long.add(Buffer.from(piece));
      this.#longBytes += piece.length;
    }
    this.#pieces = [];
  }

  #take(text: string, out: SseEvent[]): void {
    if (text === "") return;
    const dropped = this.#begun ? this.#afterCr && text.charCodeAt(0) === LF : text.charCodeAt(0) === BYTE_ORDER_MARK;
    let from = dropped ? 1 : 0;
    this.#begun = true;
    this.#afterCr = false;
    let lf = text.indexOf("\n", from);
    let cr = text.indexOf("\r", from);
    while (lf >= 0 || cr >= 0) {
      const endsWithCr = cr >= 0 && (lf < 0 || cr < lf);
      const end = endsWithCr ? cr : lf;
      const line = this.#join(text.slice(from, end));
      from = end + 1;
      // A line feed right after a carriage return belongs to it, also when it comes with the next bytes.
      if (endsWithCr && from === text.length) this.#afterCr = true;
      else if (endsWithCr && text.charCodeAt(from) === LF) from += 1;
      if (line === "") this.#dispatch(out);
      else this.#line(line);
      if (lf >= 0 && lf < from) lf = text.indexOf("\n", from);
      if (cr >= 0 && cr < from) cr = text.indexOf("\r", from);
    }
    if (from < text.length) this.#keep(from === 0 ? text : text.slice(from));
  }

  #keep(piece: string): void {
    this.#pieces.push(piece);
    this.#grow(piece.length);
  }

  #grow(length: number): void {
    this.#size += length;
    if (this.#size > MAX_RESPONSE_BYTES) {
      throw new Failure("upstream_protocol", "The upstream provider sent an event larger than this gateway reads.");
    }
  }

  #join(rest: string): string {
    if (this.#pieces.length === 0) return rest;
    // `join` would copy even a single piece.
    if (rest !== "") this.#pieces.push(rest);
    const line = this.#pieces.length === 1 ? this.#pieces[0]! : this.#pieces.join("");
    this.#size -= line.length - rest.length;
    this.#pieces = [];
    return line;
  }

  #line(line: string): void {
    this.#grow(line.length + LINE_BYTES);
    if (line.startsWith("data:")) {
      this.#add(line.slice(line.charCodeAt(5) === 32 ? 6 : 5));
    } else if (line.startsWith("event:")) {
      this.#event = line.slice(line.charCodeAt(6) === 32 ? 7 : 6);
    } else if (line === "data") {
      this.#add("");
    } else if (line === "event") {
      this.#event = "";
    }
  }

  #add(data: string): void {
    if (this.#data === undefined) this.#data = data;
    else (this.#more ??= []).push(data);
  }

  #dispatch(out: SseEvent[]): void {
    if (this.#data !== undefined) {
      const data = this.#more === undefined ? this.#data : [this.#data, ...this.#more].join("\n");
      out.push({ event: this.#event, data });
    }
    this.#event = "";
    this.#data = undefined;
    this.#more = undefined;
    this.#size = 0;
  }
}

/** Position of the first line end; -1 without one. Bytes of multi-byte characters are never CR or LF. */
function endOfLine(bytes: Buffer): number {
  const lf = bytes.indexOf(LF);
  const cr = (lf < 0 ? bytes : bytes.subarray(0, lf)).indexOf(CR);
  return cr < 0 ? lf : cr;
}

/** Whether the data is OpenAI's end marker. Proxies add it to streams of the other dialects too. */
export function isEndMarker(data: string): boolean {
  return data.trim() === "[DONE]";
}

/**
 * Parses the data of a stream's events as JSON. Invalid JSON may be a truncated last event, so it is an error only once
 * another event follows; otherwise the end of the stream shows whether the answer is complete.
 */
export class EventJson {
  #broken = false;

  /**
   * Returns the parsed data; undefined if it is empty or not JSON. Throws `upstream_protocol` if an earlier event was
   * not JSON, or if this one exceeds `max`. Default: MAX_EVENT_JSON.
   */
  read(data: string, max: JsonSize = MAX_EVENT_JSON): unknown {
    if (this.#broken) throw unreadable();
    // Not left to the parser: a stream may have thousands of empty events in one read, and an error costs 4 µs.
    if ((data === "" || data.charCodeAt(0) <= SPACE) && data.trim() === "") return undefined;
    if (isTooComplex(data, max)) throw tooComplex();
    try {
      return parseExactly(data);
    } catch {
      this.#broken = true;
      return undefined;
    }
  }
}
