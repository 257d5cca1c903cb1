import type { CompletionChunk } from "../../../gen/parley/v1/completion_pb.js";
import { AnswerBuilder } from "../../core/answer-builder.ts";
import type { Answer } from "../../core/provider.ts";
import { keepAll } from "../wire/redaction.ts";
import { incomplete, truncated } from "../wire/response-failure.ts";
import type { StreamReader } from "../wire/response.ts";
import { EventJson, isEndMarker, type SseEvent } from "../wire/sse.ts";
import { AnswerReader } from "./answer-reader.ts";

/**
 * Reads the events of one stream. The dialect has no end marker: an answer is complete if every candidate has a finish
 * reason at the end of the body. `[DONE]`, which some proxies add, also ends it.
 */
export class AnswerStream implements StreamReader {
  readonly #reader: AnswerReader;
  readonly #events = new EventJson();
  #complete = false;

  constructor(redact = keepAll) {
    this.#reader = new AnswerReader(truncated, redact);
  }

  get complete(): boolean {
    return this.#complete;
  }

  /** Whether every candidate has a finish reason, so that only late parts or the end of the body may follow. */
  get finished(): boolean {
    return this.#reader.finished;
  }

  read({ data }: SseEvent, out: CompletionChunk[]): void {
    if (isEndMarker(data)) return this.end(out);
    const json = this.#events.read(data);
    if (json !== undefined) this.#reader.read(json, out);
  }

  end(out: CompletionChunk[]): void {
    this.#reader.finish(out);
    this.#complete = true;
  }
}

/**
 * Converts a whole answer. Throws the Failure of an error body with a 2xx status, and `upstream_protocol` for an
 * unfinished or unusable answer.
 */
export function toAnswer(json: unknown, redact = keepAll): Answer {
  const builder = new AnswerBuilder();
  for (const chunk of toAnswerChunks(json, redact)) builder.add(chunk);
  return builder.build();
}

/**
 * Reads a whole answer into chunks. Accepts an array, the provider's format of a stream without `alt=sse`. Throws like
 * `toAnswer`.
 */
export function toAnswerChunks(json: unknown, redact = keepAll): readonly CompletionChunk[] {
  const reader = new AnswerReader(incomplete, redact);
  const out: CompletionChunk[] = [];
  reader.read(json, out);
  reader.finish(out);
  return out;
}
