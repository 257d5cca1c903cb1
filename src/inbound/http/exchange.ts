import { isUtf8 } from "node:buffer";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Readable } from "node:stream";
import type { Clock } from "../../core/clock.ts";
import { Failure } from "../../core/failure.ts";
import type { LimitFacts } from "../../core/limiter.ts";
import type { BodyText } from "../../core/provider.ts";
import { releaseMemory } from "../../core/release-memory.ts";
import { countValues, MAX_REQUEST_JSON, measureJson } from "../../encoding/json-size.ts";
import type { Format, HeaderList } from "../../formats/format.ts";
import type { JsonText } from "../../formats/held-strings.ts";
import type { Calls, OpenCall } from "../calls.ts";
import { WRITE_STALL_MS } from "../drain.ts";
import { isFinal, retryAfterMs } from "../failure-table.ts";
import { toLimitHeaders } from "../headers.ts";
import { type BodyMeter, endAfterBody, hasUnreadBody, readBody } from "./body.ts";
import { isSmall, slicesOf, writeSlices } from "./stream.ts";
import { limitUnread } from "./unread-response.ts";

/**
 * Longest host with its port. Names have 253 characters at most, and the time to parse a longer one, in percent-encoding or Punycode,
 * grows with the square of its length.
 */
export const MAX_HOST_CHARS = 300;

const ABSOLUTE = new RegExp(`^https?://[^/?#]{1,${MAX_HOST_CHARS}}(?:[/?#]|$)`, "i");

/** The URL of a request target in absolute form; undefined for any other target. */
export function absoluteForm(target: string): URL | undefined {
  return !target.startsWith("/") && ABSOLUTE.test(target) ? (URL.parse(target) ?? undefined) : undefined;
}

/** Size limit of JSON bodies and forms in bytes. */
export const MAX_BODY_BYTES = 32 * 1024 * 1024;

/** Headers of every API response: no caching, no type sniffing. */
export const PRIVATE_HEADERS = ["cache-control", "no-store", "x-content-type-options", "nosniff"] as const;

const NO_QUERY = new URLSearchParams();

/** How a failure is written. */
interface Refusal {
  readonly status: number;
  /** Default: empty. */
  readonly body?: object;
  /** Content type. Default: JSON. */
  readonly type?: string;
  readonly headers?: HeaderList;
}

/** The end of a body that is known later than the rest. */
export interface LateEnd {
  /** Its length. */
  readonly bytes: number;
  /** Returns the end in place of the one as written, of the same length. */
  readonly text: (asWritten: string) => Promise<string>;
}

export interface ExchangeFacts {
  readonly requestId: string;
  readonly clock: Clock;
  /** Headers of every response. */
  readonly headers: HeaderList;
  readonly formatOf: (path: string) => Format;
  /** The connection: over HTTP/2 also that of other exchanges. */
  readonly connection: Socket;
  /** Called when the caller is authenticated. Default: nothing is. */
  readonly authenticated?: () => void;
}

/** One HTTP request and its response, for the routes. */
export class Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly requestId: string;
  readonly connection: Socket;
  readonly authenticated: (() => void) | undefined;
  /** By the clock's `monotonic`. */
  readonly arrivedMs: number;
  /** Path without the query. */
  readonly path: string;
  /** The caller's limits after the request was counted. */
  limits: LimitFacts | undefined;
  /** Last known limits of the caller, for responses without counting; none before authentication. */
  limitsKnown: () => LimitFacts | undefined = () => undefined;
  readonly #formatOf: (path: string) => Format;
  readonly #clock: Clock;
  #format: Format | undefined;
  /** Headers of every response: request ID, CORS. */
  readonly #headers: string[];

  constructor(request: IncomingMessage, response: ServerResponse, facts: ExchangeFacts) {
    this.request = request;
    this.response = response;
    this.requestId = facts.requestId;
    this.connection = facts.connection;
    this.authenticated = facts.authenticated;
    this.arrivedMs = facts.clock.monotonic();
    this.#formatOf = facts.formatOf;
    this.#clock = facts.clock;
    const target = request.url!;
    const query = target.indexOf("?");
    this.path = query < 0 ? target : target.slice(0, query);
    // Used by proxies; its host is compared with the Host header.
    this.path = absoluteForm(target)?.pathname ?? this.path;
    this.#headers = ["x-request-id", facts.requestId];
    for (const header of facts.headers) this.#headers.push(...header);
  }

  /** The format of its answer. Default: the one that owns the path. */
  get format(): Format {
    return (this.#format ??= this.#formatOf(this.path));
  }

  set format(format: Format) {
    this.#format = format;
  }

  /** Parameters of the query. */
  get query(): URLSearchParams {
    const target = this.request.url!;
    const start = target.indexOf("?");
    return start < 0 ? NO_QUERY : new URLSearchParams(target.slice(start));
  }

  /** Writes a JSON response. */
  json(status: number, body: object, headers: HeaderList = []): void {
    this.#json(status, body, { headers, lingers: false });
  }

  #json(
    status: number,
    body: object | undefined,
    { headers, lingers, type }: { readonly headers: HeaderList; readonly lingers: boolean; readonly type?: string },
  ): void {
    const { response } = this;
    if (response.destroyed || response.headersSent) return;
    const text = body === undefined ? "" : JSON.stringify(body);
    this.#head(status, { bytes: Buffer.byteLength(text), ...(type !== undefined && { type }) }, headers);
    if (!lingers) return void response.end(text);
    response.write(text);
    endAfterBody(this);
  }

  /** Writes a JSON response that may be large, with back-pressure. Throws the call's reason. */
  async largeJson(
    json: JsonText,
    headers: HeaderList,
    { clock, open, end }: { readonly clock: Clock; readonly open: Pick<OpenCall, "answering">; readonly end?: LateEnd },
  ): Promise<void> {
    const { response } = this;
    if (end === undefined && typeof json === "string" && isSmall(json)) {
      this.#head(200, { bytes: Buffer.byteLength(json) }, headers);
      return void response.end(json);
    }
    const pieces = typeof json === "string" ? [Buffer.from(json)] : json;
    const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
    this.#head(200, { bytes }, headers);
    const last = end && pieces.at(-1)!;
    const first = last === undefined ? pieces : [...pieces.slice(0, -1), last.subarray(0, -end!.bytes)];
    await writeSlices(response, first, { clock, call: open.answering() });
    if (last !== undefined) {
      const text = await end!.text(last.toString("utf8", last.length - end!.bytes));
      // The caller may have disconnected meanwhile.
      if (response.destroyed) return;
      response.write(text);
    }
    response.end(() => {
      if (!response.destroyed) releaseMemory(pieces);
    });
  }

  /** Writes a JSON response of unknown length, with back-pressure. Throws the call's reason. */
  async jsonPieces(
    pieces: Iterable<Buffer>,
    headers: HeaderList,
    { clock, open }: { readonly clock: Clock; readonly open: Pick<OpenCall, "answering"> },
  ): Promise<void> {
    this.#head(200, {}, headers);
    await writeSlices(this.response, pieces, { clock, call: open.answering() });
    this.response.end();
  }

  /** `bytes`: length of the body; undefined where it is not known. */
  #head(
    status: number,
    { bytes, type = "application/json" }: { readonly bytes?: number; readonly type?: string },
    headers: HeaderList,
  ): void {
    const first = ["content-type", type, ...PRIVATE_HEADERS];
    if (bytes !== undefined) first.push("content-length", String(bytes));
    this.response.writeHead(status, this.headerList(first, headers));
  }

  /** Writes a failure in the format of the exchange. Writes nothing when the caller has disconnected. */
  fail(failure: Failure, headers: HeaderList = []): void {
    if (failure.code === "cancelled" || this.response.headersSent) return void this.response.destroy();
    const more = [...headers];
    if (isFinal(failure)) more.push(["x-should-retry", "false"]);
    if (failure.code === "unauthenticated") more.push(["www-authenticate", "Bearer"]);
    const { status, body, headers: own = [] } = this.format.writeError(failure, this.requestId);
    this.refuse(failure, { status, body, headers: [...more, ...own] });
  }

  /** Writes a failure in any format, with `retry-after`. Closes the connection when much of a body is still to come. */
  refuse(failure: Failure, { status, body, type, headers = [] }: Refusal): void {
    this.limits = failure.limits ?? this.limits;
    const more = [...headers];
    const waitMs = retryAfterMs(failure);
    if (waitMs !== undefined)
      more.push(["retry-after", String(Math.ceil(waitMs / 1000))], ["retry-after-ms", String(Math.ceil(waitMs))]);
    const unread = hasUnreadBody(this.request, failure);
    if (unread) more.push(["connection", "close"]);
    this.#json(status, body, { headers: more, lingers: unread, ...(type !== undefined && { type }) });
  }

  /** Headers of this exchange plus `more`, as the flat list that `writeHead` takes without copying. */
  headerList(first: readonly string[], more: HeaderList): string[] {
    const list = [...this.#headers, ...first];
    for (const [name, value] of this.format.responseHeaders?.(this.requestId) ?? []) list.push(name, value);
    for (const [name, value] of more) list.push(name, value);
    const limits = this.limits ?? this.limitsKnown();
    if (limits === undefined) return list;
    for (const [name, value] of toLimitHeaders(limits)) list.push(name, value);
    for (const [name, value] of this.format.limitHeaders?.(limits, this.#clock.now()) ?? []) list.push(name, value);
    return list;
  }

  /** Reads the body. Throws `request_too_large`, what the meter throws, or the call's reason. */
  body(open: OpenCall, meter: BodyMeter): Promise<Buffer> {
    return readBody(this, open, { maxBytes: MAX_BODY_BYTES, meter });
  }
}

/** Longest text of a body that is kept beside its parsed value. */
const MAX_SOURCE_CHARS = 4 * 1024 * 1024;
/** Most fields of the outermost object. Formats have some forty, and each unknown one is read several times. */
const MAX_FIELDS = 1_000;
/** Most keys and values of one: an object with many fields takes as long to count as to parse. */
const MAX_SOURCE_VALUES = 16_384;

/**
 * Parses a JSON body; `source` has its text, unless it is large or another parser could read it differently. Throws `invalid_request`
 * that says what is wrong.
 */
export function parseBodyText(body: Buffer): {
  readonly json: BodyText["json"];
  readonly source: BodyText | undefined;
} {
  if (body.length === 0) throw unreadable("is empty; it must be a JSON object");
  if (!isUtf8(body)) throw unreadable("is not valid UTF-8");
  const text = body.toString("utf8");
  const outermost: number[] = [];
  const { depth, values } = measureJson(text, MAX_REQUEST_JSON, outermost);
  if (depth > MAX_REQUEST_JSON.depth) throw unreadable(`is nested deeper than ${MAX_REQUEST_JSON.depth} levels`);
  if (values > MAX_REQUEST_JSON.values) throw unreadable(`has more than ${MAX_REQUEST_JSON.values} keys and values`);
  // Brackets, and for each field a colon and a comma, but for the last one.
  if (outermost.length > 2 * MAX_FIELDS + 1) throw unreadable(`has more than ${MAX_FIELDS} fields`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (reason) {
    throw unreadable(`is not valid JSON${positionOf(reason)}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw unreadable("must be a JSON object");
  const json = value as BodyText["json"];
  const isKept = text.length <= MAX_SOURCE_CHARS && values <= MAX_SOURCE_VALUES && countValues(json) === values;
  return { json, source: isKept ? { text, json, outermost } : undefined };
}

/** Parses a JSON body, and releases its memory unless it is kept. Throws `invalid_request`. */
export function parseOnce(body: Buffer, isKept: boolean): ReturnType<typeof parseBodyText> {
  try {
    return parseBodyText(body);
  } finally {
    if (!isKept) releaseMemory([body]);
  }
}

/** The failure of a body that cannot be parsed. */
export function unreadable(what: string): Failure {
  return new Failure("invalid_request", `The request body ${what}.`);
}

/** The position where parsing stopped, without repeating the body. */
function positionOf(reason: unknown): string {
  const found = /at position (\d+)/.exec(String(reason));
  return found === null ? "" : ` (at character ${found[1]})`;
}

/** Time to read the last bytes of a call that was ended. */
const LAST_WORDS_MS = 1_000;

/** The call of an HTTP exchange: in flight until its handler is done and its response sent. */
interface ExchangeCall {
  readonly open: OpenCall;
  /** The handler is done and has ended the response, if any. Must be called once. */
  readonly done: () => void;
}

/**
 * Opens the call of an exchange. It ends when the connection is closed, and when the caller reads nothing of the end of the
 * response for `stallMs`.
 */
export function openCall(
  calls: Calls,
  { response, stallMs = WRITE_STALL_MS }: { readonly response: ServerResponse; readonly stallMs?: number },
  deadlineMs: number | undefined,
): ExchangeCall {
  const open = calls.open(deadlineMs);
  let left = 2;
  const partDone = (): void => {
    left -= 1;
    if (left === 0) open.close();
  };
  const closed = (): void => {
    if (!response.writableFinished) open.leave();
    partDone();
  };
  if (response.destroyed) closed();
  else response.once("close", closed);
  return {
    open,
    done: () => {
      partDone();
      // Almost always all of it was sent.
      if (left === 0 || response.writableLength === 0) return;
      destroyWith(response, open.answering().signal);
      limitUnread(response, stallMs);
    },
  };
}

/** Destroys an ended response when its call ends. */
function destroyWith(response: ServerResponse, signal: AbortSignal): void {
  const destroy = (): void => void response.destroy();
  if (signal.aborted) {
    const timer = setTimeout(destroy, LAST_WORDS_MS);
    response.once("close", () => clearTimeout(timer));
  } else signal.addEventListener("abort", destroy, { once: true });
}

/**
 * Ends a response with a file, of which a caller that does not read holds no more than a slice: TLS encrypts what is written at
 * once, for each connection.
 */
export function endWithFile(response: ServerResponse, content: Buffer, stallMs = WRITE_STALL_MS): void {
  limitUnread(response, stallMs);
  Readable.from(slicesOf(content), { highWaterMark: 1 }).pipe(response);
}
