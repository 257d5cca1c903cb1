import type { CompletionChunk } from "../../../gen/parley/v1/completion_pb.js";
import type { StreamReader } from "../wire/response.ts";
import { truncated } from "../wire/response-failure.ts";
import { EventJson, isEndMarker } from "../wire/event-json.ts";
import { object } from "../wire/lenient.ts";
import { keepAll, type Redact } from "../wire/redaction.ts";
import type { SseEvent } from "../wire/sse.ts";
import { AnswerContent } from "./answer-content.ts";
import { type Finish, readFinish, writeFinish } from "./finish-reason.ts";
import { toInBandFailure } from "./failure.ts";
import { UsageCount } from "./usage.ts";

/** Reads the events of one streamed answer. Ignores pings and events of unknown types. */
export class AnswerStream implements StreamReader {
  readonly #content = new AnswerContent();
  readonly #usage = new UsageCount();
  readonly #events = new EventJson();
  #finish: Finish | undefined;
  #complete = false;

  readonly #redact: Redact;

  /** `redact` takes the provider's credentials out of its errors. */
  constructor(redact: Redact = keepAll) {
    this.#redact = redact;
  }

  get complete(): boolean {
    return this.#complete;
  }

  /** Whether the stop reason has arrived. Only the end event may still follow. */
  get finished(): boolean {
    return this.#finish !== undefined;
  }

  read({ data }: SseEvent, out: CompletionChunk[]): void {
    if (isEndMarker(data)) return this.end(out);
    const event = object(this.#events.read(data));
    switch (event["type"]) {
      case "message_start":
        return this.#usage.update(object(event["message"])["usage"]);
      case "content_block_start":
        return this.#content.open(event["index"], object(event["content_block"]), out);
      case "content_block_delta":
        return this.#content.add(event["index"], object(event["delta"]), out);
      case "content_block_stop":
        return this.#content.close(event["index"], out);
      case "message_delta":
        this.#usage.update(event["usage"]);
        this.#finish = readFinish(object(event["delta"])) ?? this.#finish;
        return;
      case "message_stop":
        return this.end(out);
      case "error":
        throw toInBandFailure(event, { begun: this.#content.begun, redact: this.#redact });
    }
  }

  /** The end event may be missing. Without a stop reason the answer is incomplete and this throws `upstream_protocol`. */
  end(out: CompletionChunk[]): void {
    if (this.#finish === undefined) throw truncated();
    this.#complete = true;
    writeFinish(this.#finish, { content: this.#content, usage: this.#usage }, out);
  }
}
