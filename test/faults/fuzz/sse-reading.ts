import { type CompletionChunk, CompletionChunkSchema } from "../../../gen/parley/v1/completion_pb.js";
import { Failure, type FailureCode } from "../../../src/core/failure.ts";
import type { Emit } from "../../../src/core/provider.ts";
import { encode } from "../../../src/inbound/grpc/definition.ts";
import type { Upstream, UpstreamResponse } from "../../../src/providers/transport/http.ts";
import { type DialectCall, fetchStream } from "../../../src/providers/wire/response.ts";
import { checkGrammar } from "../../providers/grammar.ts";
import { type DialectName, STREAM_DIALECTS } from "./sse-streams.ts";

/** Result of reading one stream to its end. */
export interface Reading {
  /** Whole answer in the contract's encoding, without generated call IDs. */
  readonly said: string;
  readonly failure: Failure | undefined;
  /** Violated invariant of the reader, if any. */
  readonly flaw: string | undefined;
}

/** Failures that a stream may end with: never internal ones. */
const POSSIBLE: ReadonlySet<FailureCode> = new Set([
  "upstream_protocol",
  "upstream_unavailable",
  "upstream_timeout",
  "upstream_rate_limited",
  "upstream_rejected",
  "upstream_refused_us",
]);

/** A call without an ID from its provider gets a random one. */
const MADE_UP_ID = /call_[0-9a-f]{24,32}/g;

/** Reads a stream that arrives in these pieces, with the product's reader. */
export function readPieces(dialect: DialectName, pieces: readonly Buffer[]): Promise<Reading> {
  return readFrom(arriving(pieces), dialect);
}

/** Sends a request with these headers to the upstream, and reads the streamed response. */
export async function readFrom(
  upstream: Upstream,
  dialect: DialectName,
  headers: DialectCall["headers"] = {},
): Promise<Reading> {
  const { createReader, whole } = STREAM_DIALECTS[dialect];
  const chunks: CompletionChunk[] = [];
  let failure: Failure | undefined;
  let flaw: string | undefined;
  try {
    const emit: Emit = (batch) => {
      if (batch.length === 0) flaw = "an empty batch";
      chunks.push(...batch);
      return undefined;
    };
    await fetchStream(upstream, { ...CALL, headers }, { reader: createReader(), whole, emit });
  } catch (reason) {
    if (reason instanceof Failure) failure = reason;
    else flaw = `no Failure: ${String(reason)}`;
  }
  flaw ??= failure === undefined ? flawOfEnd(chunks) : flawOfFailure(failure);
  const bytes = Buffer.concat(chunks.map((chunk) => encode(CompletionChunkSchema, chunk)));
  return { said: bytes.toString("latin1").replace(MADE_UP_ID, "call_"), failure, flaw };
}

/** Whether two readings are equal. */
export function isSame(one: Reading, other: Reading): boolean {
  return describe(one) === describe(other) && one.said === other.said;
}

/** Formats a reading. */
export function describe({ said, failure }: Reading): string {
  return `${said.length} bytes, ${failure === undefined ? "success" : `${failure.code}: ${failure.message}`}`;
}

const CALL: DialectCall = {
  path: "/",
  headers: {},
  body: "{}",
  signal: new AbortController().signal,
  idleMs: 10_000,
  toFailure: () => new Failure("upstream_rejected", "refused"),
};

/** An upstream whose response arrives in these pieces, one per read. */
function arriving(pieces: readonly Buffer[]): Upstream {
  let at = 0;
  const answer: UpstreamResponse = {
    status: 200,
    headers: { "content-type": "text/event-stream" },
    read: async () => (at < pieces.length ? [pieces[at++]!] : undefined),
    body: async () => pieces,
    pause: (until) => until,
    complete: () => undefined,
    abandon: () => false,
  };
  return { post: async () => answer, close: async () => undefined };
}

/** Checks a successful answer: a stream that follows the contract's grammar, with at least one choice. */
function flawOfEnd(chunks: readonly CompletionChunk[]): string | undefined {
  try {
    checkGrammar(chunks);
  } catch (reason) {
    return (reason as Error).message;
  }
  return chunks.some(({ event }) => event.case === "choiceFinish") ? undefined : "a success without a finish";
}

/** Callers see an error in the reader as an upstream failure; its cause distinguishes them. */
function flawOfFailure({ code, cause }: Failure): string | undefined {
  if (!POSSIBLE.has(code)) return `a failure of the kind ${code}`;
  const isMistake = cause instanceof TypeError || cause instanceof RangeError || cause instanceof ReferenceError;
  return isMistake ? `the reader stumbled: ${cause.stack}` : undefined;
}
