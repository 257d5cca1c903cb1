import type { CompletionChunk } from "../../../gen/parley/v1/completion_pb.js";
import { Failure } from "../../../src/core/failure.ts";
import { AnswerStream, toAnswer } from "../../../src/providers/openai-responses/response.ts";
import { SseParser } from "../../../src/providers/wire/sse.ts";
import { checkGrammar } from "../grammar.ts";
import { plainAnswer } from "../openai/reading.ts";

/** What a stream said before it ended or failed. */
export interface StreamOutcome {
  readonly chunks: readonly CompletionChunk[];
  readonly failure: Failure | undefined;
}

/** Reads the bytes of a stream as the transport does, in pieces of `size` bytes. Default: at once. */
export function readStream(bytes: Uint8Array, size = bytes.length): StreamOutcome {
  const parser = new SseParser();
  const reader = new AnswerStream();
  const chunks: CompletionChunk[] = [];
  const readAll = (events: ReturnType<SseParser["push"]>): void => {
    for (const event of events) if (!reader.complete) reader.read(event, chunks);
  };
  try {
    for (let at = 0; at < bytes.length; at += size) readAll(parser.push(bytes.subarray(at, at + size)));
    readAll(parser.end());
    if (!reader.complete) reader.end();
  } catch (reason) {
    if (reason instanceof Failure) return { chunks, failure: reason };
    throw reason;
  }
  checkGrammar(chunks);
  return { chunks, failure: undefined };
}

/** Reads a whole response: its answer in protobuf's JSON, or how it fails. */
export function readWhole(json: unknown): { readonly answer: unknown; readonly failure: Failure | undefined } {
  try {
    return { answer: plainAnswer(toAnswer(json)), failure: undefined };
  } catch (reason) {
    if (reason instanceof Failure) return { answer: undefined, failure: reason };
    throw reason;
  }
}

/** A stream of these events. */
export function toSse(...events: readonly (object & { readonly type: string })[]): Buffer {
  return Buffer.from(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(""));
}
