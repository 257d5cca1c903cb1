import type { CompletionChunk } from "../../../gen/parley/v1/completion_pb.js";
import { MAX_ANSWER_BYTES } from "../../core/answer-builder.ts";
import type { LargeAnswer } from "../../core/call.ts";
import { Failure } from "../../core/failure.ts";
import type { Emit, UpstreamCall } from "../../core/provider.ts";
import { MAX_EVENT_JSON } from "../../encoding/json-size.ts";
import {
  type BodyRoom,
  MAX_RESPONSE_BYTES,
  type Upstream,
  type UpstreamRequest,
  type UpstreamResponse,
} from "../transport/http.ts";
import { count, object } from "./json.ts";
import { parseNumbers, parseResponse } from "./parse-response.ts";
import { type SseEvent, SseParser } from "./sse.ts";

/** A response that is not a 2xx. The dialect's `failure.ts` maps it to a Failure. */
export interface Refusal {
  readonly status: number;
  readonly headers: UpstreamResponse["headers"];
  /** The raw body, JSON or a proxy's HTML, cut at MAX_REFUSAL_BYTES. */
  readonly body: string;
}

/** A dialect's request, and its mapping of a refusal. */
export interface DialectCall extends UpstreamRequest {
  /** Counts the work of reading a whole answer, and the bytes of a large one. Default: they are not counted. */
  readonly share?: UpstreamCall["share"];
  /** Size limit of a whole response. Default: MAX_RESPONSE_BYTES. */
  readonly maxBytes?: number | undefined;
  readonly toFailure: (refusal: Refusal) => Failure;
}

/** A dialect's request for a call. */
export function toDialectCall(
  { translation, signal, idleMs, progress, keyFamilyId, accountId, share, trace }: UpstreamCall,
  own: Pick<DialectCall, "path" | "headers" | "toFailure">,
): DialectCall {
  return { body: translation.body, signal, idleMs, progress, keyFamilyId, accountId, share, trace, ...own };
}

/** An event of a stream. A framing may add further fields. */
interface StreamEvent {
  readonly data: string;
}

/** Splits the bytes of one stream into events. Bytes may be split anywhere. */
export interface StreamParser<Event extends StreamEvent> {
  /** Returns the events that these bytes complete. It or their iterator throws a Failure for bytes that cannot be read. */
  push(bytes: Buffer): Iterable<Event>;
  /** Bytes of the event that has begun. */
  readonly unfinishedBytes: number;
  /** Call it at the end of the stream. Returns an event that lacked its end, or throws a Failure. */
  end(): Iterable<Event>;
}

/** The encoding of a stream's events. */
export interface Framing<Event extends StreamEvent> {
  /** Media type that is requested, and required of the response. */
  readonly mediaType: string;
  readonly createParser: () => StreamParser<Event> | Promise<StreamParser<Event>>;
}

/** Server-sent events. */
export const SSE: Framing<SseEvent> = { mediaType: "text/event-stream", createParser: () => new SseParser() };

/** A dialect's reader of one event stream. Create one per stream. */
export interface StreamReader<Event extends StreamEvent = SseEvent> {
  /** Appends the event's chunks. Throws a Failure if the event reports an error or cannot be read. */
  read(event: Event, out: CompletionChunk[]): void;
  /** Whether the answer is complete. Nothing more is read then. */
  readonly complete: boolean;
  /** Whether every choice has a finish reason. The end of the connection then ends the answer. */
  readonly finished?: boolean;
  /** The body ended without `complete`: appends the pending chunks, or throws `upstream_protocol`. */
  end(out: CompletionChunk[]): void;
}

/** The reader and the consumer of a stream. */
export interface StreamHandling<Event extends StreamEvent> {
  readonly framing: Framing<Event>;
  readonly reader: StreamReader<Event>;
  /** Maps a whole JSON answer that the provider sent in place of a stream. */
  readonly whole: (json: unknown) => readonly CompletionChunk[];
  readonly emit: Emit;
}

/** Size limit of a response with a count of tokens. Such responses have some dozens of bytes. */
const MAX_COUNT_BYTES = 64 * 1024;

/** Bytes that are read of a refusal's body. The error is at its beginning. */
const MAX_REFUSAL_BYTES = 64 * 1024;

/** Milliseconds in which the body of a refusal is read, because a fallback waits for it. */
const REFUSAL_MS = 1000;

const NOTHING = Buffer.alloc(0);

/** Bytes of one event above which its memory is counted. For a whole body the limit is TURN_BYTES. */
const LARGE_BYTES = 256 * 1024;

/** Length of a whole response up to which the work of reading it is not counted. */
const SHORT_BYTES = 32 * 1024;

/** Time in ms to wait for more events once every choice has finished: the end marker, usage, or another choice. */
const FINISHED_WAIT_MS = 10_000;

/** Posts and maps a whole JSON response. An error in `map` becomes `upstream_protocol`. */
export function fetchWhole<T>(upstream: Upstream, call: DialectCall, map: (json: unknown) => T): Promise<T> {
  return fetchBody(upstream, call, (pieces) => map(parseResponse(pieces)));
}

/** As `fetchWhole`, for a response with many numbers, such as vectors. */
export function fetchNumbers<T>(upstream: Upstream, call: DialectCall, map: (json: unknown) => Promise<T>): Promise<T> {
  return fetchBody(upstream, call, (pieces) => map(parseNumbers(pieces)));
}

/** Posts and returns the whole number at a field of the response. Throws `upstream_protocol` for a response without it. */
export function fetchCount(upstream: Upstream, call: DialectCall, field: string): Promise<number> {
  return fetchWhole(upstream, { ...call, maxBytes: MAX_COUNT_BYTES }, (json) => {
    const found = count(object(json)[field]);
    if (found === undefined) throw new Failure("upstream_protocol", `The provider's response has no ${field}.`);
    return found;
  });
}

async function fetchBody<T>(
  upstream: Upstream,
  call: DialectCall,
  read: (pieces: readonly Buffer[]) => T | Promise<T>,
): Promise<T> {
  const response = await upstream.post(call, "application/json");
  const room = new AnswerRoom(call, upstream, response);
  try {
    if (!isReadable(response)) throw await toUnreadableFailure(response, call);
    const pieces = await response.body(room, call.maxBytes);
    // For short responses counting would cost more than the work.
    const isLong = pieces.length > 1 || (pieces[0]?.length ?? 0) > SHORT_BYTES;
    return await (isLong && call.share !== undefined ? call.share.work(() => read(pieces)) : read(pieces));
  } catch (reason) {
    response.abandon();
    room.drop();
    throw call.signal.aborted ? reason : toFailure(reason, response);
  } finally {
    room.end();
  }
}

/**
 * Posts and maps a stream, and emits one batch per socket read. A whole JSON response in place of a stream goes through
 * `whole`: it is an error, or a completion that the provider did not stream. The request body is released once it is
 * posted.
 */
export function fetchStream(
  upstream: Upstream,
  call: DialectCall,
  handling: Omit<StreamHandling<SseEvent>, "framing">,
): Promise<void> {
  return fetchFramedStream(upstream, call, { framing: SSE, ...handling });
}

/** As `fetchStream`, for a stream of any framing. */
export async function fetchFramedStream<Event extends StreamEvent>(
  upstream: Upstream,
  call: DialectCall,
  { framing, reader, whole, emit }: StreamHandling<Event>,
): Promise<void> {
  const response = await upstream.post(call, framing.mediaType);
  call.body = NOTHING;
  const room = new AnswerRoom(call, upstream, response);
  let over = false;
  try {
    if (!isReadable(response)) throw await toUnreadableFailure(response, call);
    const type = String(response.headers["content-type"] ?? "");
    if (isOfType(type, "application/json")) {
      const pieces = await response.body(room);
      const read = () => whole(parseResponse(pieces, MAX_EVENT_JSON));
      await emit(call.share === undefined ? read() : call.share.work(read));
      return;
    }
    if (!isOfType(type, framing.mediaType))
      throw new Failure("upstream_protocol", "The upstream provider answered with something that is not a stream.");
    const parser = framing.createParser();
    const events = new Events(parser instanceof Promise ? await parser : parser, reader);
    while (!over) {
      const bytes = await readMore(response, { reader, signal: call.signal });
      const { chunks, failure } = readChunks(bytes, events);
      const emitted = chunks.length > 0 ? emit(chunks) : undefined;
      if (emitted !== undefined) {
        room.emitting();
        await emitted;
      }
      if (failure !== undefined) throw failure.reason;
      over = reader.complete || bytes === undefined;
      if (chunks.length > 0) room.passed();
      if (events.unfinishedBytes > LARGE_BYTES && !over) await readOn(response, room, events.unfinishedBytes);
    }
  } catch (reason) {
    const hasEnded = reader.finished === true || (reason instanceof Failure && reason.inBand);
    if (response.abandon() && !hasEnded && call.progress !== undefined) call.progress.isCut = true;
    room.drop();
    throw call.signal.aborted ? reason : toFailure(reason, response);
  } finally {
    if (over) response.complete();
    else response.abandon();
    room.end();
  }
}

/** Waits until there is memory for more than these bytes of an event. */
async function readOn(response: UpstreamResponse, room: AnswerRoom, bytes: number): Promise<void> {
  const waiting = room.take(bytes);
  if (waiting !== undefined) await response.pause(waiting);
}

/** Memory of one answer while it is read. Ordinary answers take none. */
class AnswerRoom implements BodyRoom {
  readonly #call: DialectCall;
  readonly #upstream: Upstream;
  readonly #response: UpstreamResponse;
  #answer: LargeAnswer | undefined;

  constructor(call: DialectCall, upstream: Upstream, response: UpstreamResponse) {
    this.#call = call;
    this.#upstream = upstream;
    this.#response = response;
  }

  /** Requests memory for the bytes of an unfinished event or body beyond LARGE_BYTES. Returns a promise while there is too little. */
  take(bytes: number): Promise<void> | undefined {
    const { share, signal, progress } = this.#call;
    this.#answer ??= share?.openAnswer({
      provider: this.#upstream,
      abandon: () => this.#response.abandon(tooSlow()),
    });
    const waiting = this.#answer?.take(bytes, signal);
    if (waiting !== undefined) progress?.paused?.(waiting);
    return waiting;
  }

  pause(): void {
    this.#answer?.pause();
  }

  resume(): void {
    this.#answer?.resume();
  }

  /** See `LargeAnswer.emitting`. */
  emitting(): void {
    this.#answer?.emitting();
  }

  /** See `LargeAnswer.passed`. */
  passed(): void {
    this.#answer?.passed();
  }

  /** See `LargeAnswer.drop`. */
  drop(): void {
    this.#answer?.drop();
  }

  /** Call it when nothing more will be read. */
  end(): void {
    this.#answer?.read();
  }
}

const tooSlow = (): Failure =>
  new Failure(
    "upstream_timeout",
    "The upstream provider sent a large answer too slowly while others waited for memory.",
  );

function isOfType(type: string, mediaType: string): boolean {
  return type.split(";", 1)[0]!.trim().toLowerCase() === mediaType;
}

/**
 * Reads the next bytes. Once every choice has finished, a cut or silent connection counts as the end of the body. An abort does not: some
 * servers name a finish reason in every event, and the count so far would be taken for that of the answer.
 */
function readMore(
  response: UpstreamResponse,
  { reader, signal }: { readonly reader: Pick<StreamReader, "finished">; readonly signal: AbortSignal },
): Promise<readonly Buffer[] | undefined> {
  if (reader.finished !== true) return response.read();
  return response.read(FINISHED_WAIT_MS).catch((reason: unknown) => {
    if (signal.aborted) throw reason;
    return undefined;
  });
}

/**
 * Maps these bytes, or the end of the body. Chunks before a failure in the same read are still delivered, so that the
 * result does not depend on how the bytes are split.
 */
function readChunks<Event extends StreamEvent>(
  bytes: readonly Buffer[] | undefined,
  events: Events<Event>,
): { readonly chunks: readonly CompletionChunk[]; readonly failure?: { readonly reason: unknown } } {
  const chunks: CompletionChunk[] = [];
  try {
    if (bytes !== undefined) for (const piece of bytes) events.push(piece, chunks);
    else events.end(chunks);
  } catch (reason) {
    return { chunks, failure: { reason } };
  }
  return { chunks };
}

/** The events of one stream and their reader. */
class Events<Event extends StreamEvent> {
  readonly #parser: StreamParser<Event>;
  readonly #reader: StreamReader<Event>;
  /** Bytes of the whole stream: readers, writers and accounting may keep content until the end. */
  #bytes = 0;
  /** Characters of events that gave no chunks. The reader may keep their content. */
  #heldChars = 0;

  constructor(parser: StreamParser<Event>, reader: StreamReader<Event>) {
    this.#parser = parser;
    this.#reader = reader;
  }

  get unfinishedBytes(): number {
    return this.#parser.unfinishedBytes;
  }

  /** Reads the events of a piece. Throws `upstream_protocol` when the stream exceeds MAX_ANSWER_BYTES. */
  push(piece: Buffer, out: CompletionChunk[]): void {
    this.#bytes += piece.length;
    if (this.#bytes > MAX_ANSWER_BYTES)
      throw new Failure("upstream_protocol", "The upstream provider's stream is larger than this gateway reads.");
    this.#readAll(this.#parser.push(piece), out);
  }

  end(out: CompletionChunk[]): void {
    this.#readAll(this.#parser.end(), out);
    if (!this.#reader.complete) this.#reader.end(out);
  }

  #readAll(events: Iterable<Event>, out: CompletionChunk[]): void {
    for (const event of events) {
      if (this.#reader.complete) return;
      const before = out.length;
      this.#reader.read(event, out);
      if (out.length === before) this.#hold(event);
    }
  }

  /** Throws `upstream_protocol` when a provider sends more without content than a whole response may have. */
  #hold({ data }: Event): void {
    this.#heldChars += data.length;
    if (this.#heldChars > MAX_RESPONSE_BYTES)
      throw new Failure("upstream_protocol", "The upstream provider's stream is too long without content.");
  }
}

/** Whether the response is a 2xx without content encoding. */
function isReadable({ status, headers }: UpstreamResponse): boolean {
  return isSuccess(status) && isPlain(headers);
}

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

function isPlain(headers: UpstreamResponse["headers"]): boolean {
  return /^identity$/i.test(String(headers["content-encoding"] ?? "identity").trim());
}

/** The failure of a response that is not readable. */
async function toUnreadableFailure(response: UpstreamResponse, call: DialectCall): Promise<Failure> {
  const { status, headers } = response;
  if (isSuccess(status))
    return new Failure("upstream_protocol", "The upstream provider compressed its answer, unasked.");
  const body = isPlain(headers) ? await readRefusal(response) : "";
  response.abandon();
  return call.toFailure({ status, headers, body });
}

/** Reads the beginning of a refusal's body. A body that breaks off, or takes longer than REFUSAL_MS, is returned as far as it was read. */
async function readRefusal(response: UpstreamResponse): Promise<string> {
  const pieces: Buffer[] = [];
  const endMs = performance.now() + REFUSAL_MS;
  let size = 0;
  try {
    for (let leftMs = REFUSAL_MS; leftMs > 0 && size < MAX_REFUSAL_BYTES; leftMs = endMs - performance.now()) {
      const more = await response.read(leftMs);
      if (more === undefined) break;
      for (const piece of more) {
        pieces.push(piece);
        size += piece.length;
      }
    }
  } catch {
    // The status alone is enough to classify the refusal.
  }
  return Buffer.concat(pieces).subarray(0, MAX_REFUSAL_BYTES).toString("utf8");
}

/** Returns a Failure with the upstream status; any other error means that the response could not be parsed. */
function toFailure(reason: unknown, { status: upstreamStatus }: UpstreamResponse): Failure {
  if (reason instanceof Failure)
    return reason.upstreamStatus === upstreamStatus ? reason : reason.with({ upstreamStatus });
  const message = "The upstream provider's answer could not be read.";
  // A SyntaxError quotes the response, which must not be logged.
  const cause = reason instanceof SyntaxError ? new Error("its JSON is broken") : reason;
  return new Failure("upstream_protocol", message, { cause, upstreamStatus });
}
