import type { CompletionChunk } from "../../../gen/parley/v1/completion_pb.js";
import type { StreamReader } from "../wire/response.ts";
import { truncated } from "../wire/response-failure.ts";
import { EventJson, isEndMarker } from "../wire/event-json.ts";
import { keepAll } from "../wire/redaction.ts";
import type { SseEvent } from "../wire/sse.ts";
import { AnswerReader } from "./answer-reader.ts";

/**
 * Reads the events of one stream. The dialect has no end marker: the body just ends, and whether the answer is whole
 * shows in the finish reasons that came before. The other dialects' marker, which proxies add, is taken at its word.
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

  /** Whether every candidate has its finish, so that only the end of the body, or late parts, may follow. */
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
