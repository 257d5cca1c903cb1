import type { CompletionChunk } from "../../../gen/parley/v1/completion_pb.js";
import { Failure } from "../../core/failure.ts";
import type { Emit } from "../../core/provider.ts";
import { parseResponse } from "./response-json.ts";
import type { Upstream, UpstreamResponse, UpstreamRequest } from "../transport/http.ts";
import { type SseEvent, SseParser } from "./sse.ts";

/** An answer that is not a 2xx, for a dialect's `failure.ts` to name. */
export interface Refusal {
  readonly status: number;
  readonly headers: UpstreamResponse["headers"];
  /** The body as it came: perhaps JSON, perhaps a proxy's HTML, at most 64 KiB of it. */
  readonly body: string;
}

/** A dialect's request, and its reading of a refusal. */
export interface DialectCall extends UpstreamRequest {
  readonly toFailure: (refusal: Refusal) => Failure;
}

/** A dialect's reading of one stream of events. Made anew for each stream. */
export interface StreamReader {
  /** Appends what the event says. Throws a Failure when the event is one, or cannot be read. */
  read(event: SseEvent, out: CompletionChunk[]): void;
  /** Whether the answer is complete, so that nothing more is read. */
  readonly complete: boolean;
  /** Whether every choice has said why it ended, so that the connection's end is one of the answer too. */
  readonly finished?: boolean;
  /** The body has ended without `complete`: appends what is owed, or throws `upstream_protocol`. */
  end(out: CompletionChunk[]): void;
}

/** How a stream is read, and who takes what it says. */
export interface StreamHandling {
  readonly reader: StreamReader;
  /** Maps an answer that came whole, unasked. */
  readonly whole: (json: unknown) => readonly CompletionChunk[];
  readonly emit: Emit;
}

/** As much of a refusal as is read: what it says stands at its beginning. */
const MAX_REFUSAL_BYTES = 64 * 1024;

const NOTHING = Buffer.alloc(0);

/** How long a stream in which every choice so far has finished may take to say that it is over, or to begin another. */
const FINISHED_WAIT_MS = 10_000;

/** Posts and maps the whole JSON answer. What `map` cannot read becomes `upstream_protocol`. */
export async function fetchWhole<T>(upstream: Upstream, call: DialectCall, map: (json: unknown) => T): Promise<T> {
  const answer = await upstream.post(call, "application/json");
  try {
    if (!isReadable(answer)) throw await whyUnreadable(answer, call);
    return map(parseResponse(await answer.body()));
  } catch (reason) {
    answer.abandon();
    throw call.signal.aborted ? reason : toFailure(reason, answer);
  }
}

/**
 * Posts and maps a stream, and emits a batch per read of the socket. A whole JSON answer in place of a stream goes through
 * `whole`, for it is either an error or a completion that the provider did not care to stream. The call's body is let
 * go of once it is posted.
 */
export async function fetchStream(
  upstream: Upstream,
  call: DialectCall,
  { reader, whole, emit }: StreamHandling,
): Promise<void> {
  const answer = await upstream.post(call, "text/event-stream");
  call.body = NOTHING;
  let over = false;
  try {
    if (!isReadable(answer)) throw await whyUnreadable(answer, call);
    const type = String(answer.headers["content-type"] ?? "");
    if (/^application\/json\b/i.test(type)) {
      await emit(whole(parseResponse(await answer.body())));
      return;
    }
    if (!/^text\/event-stream\b/i.test(type))
      throw new Failure("upstream_protocol", "The upstream provider answered with something that is not a stream.");
    const events = new SseParser();
    while (!over) {
      const bytes = await readMore(answer, reader);
      const { chunks, failure } = readChunks(bytes, events, reader);
      const room = chunks.length > 0 ? emit(chunks) : undefined;
      if (room !== undefined) await room;
      if (failure !== undefined) throw failure.reason;
      over = reader.complete || bytes === undefined;
    }
  } catch (reason) {
    answer.abandon();
    throw call.signal.aborted ? reason : toFailure(reason, answer);
  } finally {
    if (over) answer.complete();
    else answer.abandon();
  }
}

/** The next bytes. When every choice has finished, a connection that is cut or stays silent has nothing to add. */
function readMore(answer: UpstreamResponse, reader: StreamReader): Promise<readonly Buffer[] | undefined> {
  return reader.finished === true ? answer.read(FINISHED_WAIT_MS).catch(() => undefined) : answer.read();
}

/**
 * What these bytes say, or the end of them. What came before a failure in the same read was said, and is delivered: how
 * bytes are split changes nothing.
 */
function readChunks(
  bytes: readonly Buffer[] | undefined,
  events: SseParser,
  reader: StreamReader,
): { readonly chunks: readonly CompletionChunk[]; readonly failure?: { readonly reason: unknown } } {
  const chunks: CompletionChunk[] = [];
  try {
    if (bytes !== undefined) for (const piece of bytes) readAll(events.push(piece), reader, chunks);
    else {
      readAll(events.end(), reader, chunks);
      if (!reader.complete) reader.end(chunks);
    }
  } catch (reason) {
    return { chunks, failure: { reason } };
  }
  return { chunks };
}

function readAll(events: readonly SseEvent[], reader: StreamReader, out: CompletionChunk[]): void {
  for (const event of events) {
    if (reader.complete) return;
    reader.read(event, out);
  }
}

/** Whether it is an answer, and one that can be read. */
function isReadable({ status, headers }: UpstreamResponse): boolean {
  return isSuccess(status) && isPlain(headers);
}

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

function isPlain(headers: UpstreamResponse["headers"]): boolean {
  return /^identity$/i.test(String(headers["content-encoding"] ?? "identity").trim());
}

/** Why an answer is none that can be read. */
async function whyUnreadable(answer: UpstreamResponse, call: DialectCall): Promise<Failure> {
  const { status, headers } = answer;
  if (isSuccess(status))
    return new Failure("upstream_protocol", "The upstream provider compressed its answer, unasked.");
  const body = isPlain(headers) ? await readRefusal(answer) : "";
  answer.abandon();
  return call.toFailure({ status, headers, body });
}

/** The beginning of a refusal's body; what was read of one that breaks off, for its status says most. */
async function readRefusal(answer: UpstreamResponse): Promise<string> {
  const pieces: Buffer[] = [];
  let size = 0;
  try {
    while (size < MAX_REFUSAL_BYTES) {
      const more = await answer.read();
      if (more === undefined) break;
      for (const piece of more) {
        pieces.push(piece);
        size += piece.length;
      }
    }
  } catch {
    // The status is known, and stands for what is missing.
  }
  return Buffer.concat(pieces).subarray(0, MAX_REFUSAL_BYTES).toString("utf8");
}

/** A Failure as it is, with the status that the provider answered; anything else came of reading what we do not understand. */
function toFailure(reason: unknown, { status: upstreamStatus }: UpstreamResponse): Failure {
  if (reason instanceof Failure)
    return reason.upstreamStatus === upstreamStatus ? reason : reason.with({ upstreamStatus });
  const message = "The upstream provider's answer could not be read.";
  // A syntax error quotes the answer, which belongs in no log.
  const cause = reason instanceof SyntaxError ? new Error("its JSON is broken") : reason;
  return new Failure("upstream_protocol", message, { cause, upstreamStatus });
}
