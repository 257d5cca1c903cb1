import { type CompletionChunk, CompletionChunkSchema } from "../../../gen/parley/v1/completion_pb.js";
import { Failure, type FailureCode } from "../../../src/core/failure.ts";
import type { Emit } from "../../../src/core/provider.ts";
import { encode } from "../../../src/inbound/grpc/definition.ts";
import type { Upstream, UpstreamResponse } from "../../../src/providers/transport/http.ts";
import { type DialectCall, fetchStream } from "../../../src/providers/wire/response.ts";
import { type DialectName, STREAM_DIALECTS } from "./sse-streams.ts";

/** What came of reading one stream to its end. */
export interface Reading {
  /** All that was said, in the bytes of the contract, with the IDs of calls that had none left out. */
  readonly said: string;
  readonly failure: Failure | undefined;
  /** What the reader promises and did not keep; undefined when it kept everything. */
  readonly flaw: string | undefined;
}

/** What a stream may end with in place of success: nothing of ours. */
const POSSIBLE: ReadonlySet<FailureCode> = new Set([
  "upstream_protocol",
  "upstream_unavailable",
  "upstream_timeout",
  "upstream_rate_limited",
  "upstream_rejected",
  "upstream_refused_us",
]);

/** A call that its provider gave no ID has a random one. */
const MADE_UP_ID = /call_[0-9a-f]{24,32}/g;

/** Reads a stream that arrives in these pieces, as the product does. */
export function readPieces(dialect: DialectName, pieces: readonly Buffer[]): Promise<Reading> {
  return readFrom(arriving(pieces), dialect);
}

/** Asks the upstream with these headers, and reads the stream that it answers. */
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

/** Whether two readings came to the same. */
export function isSame(one: Reading, other: Reading): boolean {
  return describe(one) === describe(other) && one.said === other.said;
}

/** In words, for people. */
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

/** An upstream whose answer arrives in these pieces, each in a read of its own. */
function arriving(pieces: readonly Buffer[]): Upstream {
  let at = 0;
  const answer: UpstreamResponse = {
    status: 200,
    headers: { "content-type": "text/event-stream" },
    read: async () => (at < pieces.length ? [pieces[at++]!] : undefined),
    body: async () => pieces,
    complete: () => undefined,
    abandon: () => undefined,
  };
  return { post: async () => answer, close: async () => undefined };
}

/** What an answer that ended well has to be: every choice finished once, with nothing after it but the usage. */
function flawOfEnd(chunks: readonly CompletionChunk[]): string | undefined {
  const finished = new Set<number>();
  const spoke = new Set<number>();
  for (const { event } of chunks) {
    if (event.case === "delta") {
      if (finished.has(event.value.choiceIndex)) return `choice ${event.value.choiceIndex} says more after its finish`;
      spoke.add(event.value.choiceIndex);
    } else if (event.case === "finish") {
      if (finished.has(event.value.choiceIndex)) return `choice ${event.value.choiceIndex} is finished twice`;
      finished.add(event.value.choiceIndex);
    } else if (event.case !== "usage") return `an event of the kind ${event.case}`;
  }
  if (finished.size === 0) return "a success without a finish";
  const open = [...spoke].filter((index) => !finished.has(index));
  return open.length > 0 ? `a success with choice ${open.join(", ")} unfinished` : undefined;
}

/** A mistake of the reader itself is a failure of the upstream to callers; its cause tells. */
function flawOfFailure({ code, cause }: Failure): string | undefined {
  if (!POSSIBLE.has(code)) return `a failure of the kind ${code}`;
  const isMistake = cause instanceof TypeError || cause instanceof RangeError || cause instanceof ReferenceError;
  return isMistake ? `the reader stumbled: ${cause.stack}` : undefined;
}
