import { toJson } from "@bufbuild/protobuf";
import { ChoiceSchema, type CompletionChunk, CompletionChunkSchema } from "../../../gen/parley/v1/completion_pb.js";
import { UsageSchema } from "../../../gen/parley/v1/usage_pb.js";
import { Failure } from "../../../src/core/failure.ts";
import type { Answer } from "../../../src/core/provider.ts";
import { AnswerStream, toAnswer } from "../../../src/providers/openai/response.ts";
import { SseParser } from "../../../src/providers/wire/sse.ts";
import { checkGrammar } from "../grammar.ts";
import { fold } from "../../support/fold.ts";

/** What a stream said before it ended or failed. */
export interface StreamOutcome {
  readonly chunks: readonly CompletionChunk[];
  readonly failure: Failure | undefined;
}

/** Reads the bytes of a stream as the transport does, cut before each of `cuts`. */
export function readStream(bytes: Uint8Array, cuts: readonly number[] = []): StreamOutcome {
  const parser = new SseParser();
  const reader = new AnswerStream();
  const chunks: CompletionChunk[] = [];
  const bounds = [0, ...cuts, bytes.length];
  const readAll = (events: ReturnType<SseParser["push"]>): void => {
    for (const event of events) if (!reader.complete) reader.read(event, chunks);
  };
  try {
    for (let at = 1; at < bounds.length; at++) readAll(parser.push(bytes.subarray(bounds[at - 1], bounds[at])));
    readAll(parser.end());
    if (!reader.complete) reader.end(chunks);
  } catch (reason) {
    if (reason instanceof Failure) return { chunks, failure: reason };
    throw reason;
  }
  checkGrammar(chunks);
  return { chunks, failure: undefined };
}

/** Reads a whole completion: its answer in protobuf's JSON, or how it fails. */
export function readWhole(json: unknown): { readonly answer: unknown; readonly failure: Failure | undefined } {
  try {
    return { answer: plainAnswer(toAnswer(json)), failure: undefined };
  } catch (reason) {
    if (reason instanceof Failure) return { answer: undefined, failure: reason };
    throw reason;
  }
}

/** Where to cut so that every piece but the last has `size` bytes. */
export function everyBytes(size: number, length: number): number[] {
  return Array.from({ length: Math.max(Math.ceil(length / size) - 1, 0) }, (_, index) => (index + 1) * size);
}

/** A stream of these chunk objects, with the end marker. */
export function toSse(...events: readonly unknown[]): Buffer {
  return Buffer.from(
    [...events.map((event) => JSON.stringify(event)), "[DONE]"].map((data) => `data: ${data}\n\n`).join(""),
  );
}

/**
 * Chunks in protobuf's JSON. The start and the finish of a part are named `start` and `end`, and left out where they say nothing
 * that the grammar does not: its content follows in deltas, and it has no signature.
 */
export function plain(chunks: readonly CompletionChunk[]): unknown[] {
  return chunks.flatMap((chunk): unknown[] => {
    const { event } = chunk;
    const { partStart, partDelta, partFinish, ...other } = toJson(CompletionChunkSchema, chunk) as Record<
      string,
      object
    >;
    if (event.case === "partStart") {
      const { part, ...place } = partStart as { part: object };
      return WHOLE_KINDS.has(event.value.part?.kind.case) ? [{ start: { ...place, ...part } }] : [];
    }
    if (event.case === "partDelta") return [{ delta: partDelta }];
    if (event.case === "partFinish") return event.value.signature === "" ? [] : [{ end: partFinish }];
    return [other];
  });
}

/** Kinds of parts that say something with their start. */
const WHOLE_KINDS: ReadonlySet<string | undefined> = new Set(["image", "toolCall"]);

/** An answer in protobuf's JSON. */
export function plainAnswer({ choices, usage }: Answer): unknown {
  return { choices: choices.map((choice) => toJson(ChoiceSchema, choice)), usage: usage && toJson(UsageSchema, usage) };
}

/** The chunks put together, in protobuf's JSON. */
export function folded(chunks: readonly CompletionChunk[]): unknown {
  return plainAnswer(fold(chunks));
}
