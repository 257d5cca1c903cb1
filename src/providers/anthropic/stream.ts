import type { CompletionChunk } from "../../../gen/parley/v1/completion_pb.js";
import { Failure } from "../../core/failure.ts";
import type { StreamReader } from "../answer.ts";
import { object, parsed } from "../lenient.ts";
import type { SseEvent } from "../sse.ts";
import { AnswerContent } from "./content.ts";
import { type Ending, readEnding, sayEnding } from "./ending.ts";
import { toErrorFailure } from "./failure.ts";
import { UsageCount } from "./usage.ts";

/** Reads the events of one streamed answer. Pings and events of unknown types are passed over. */
export class AnswerStream implements StreamReader {
  readonly #content = new AnswerContent();
  readonly #usage = new UsageCount();
  #ending: Ending | undefined;
  #complete = false;
  #unreadable = false;

  get complete(): boolean {
    return this.#complete;
  }

  read({ data }: SseEvent, out: CompletionChunk[]): void {
    if (this.#unreadable) throw unreadable();
    const json = parsed(data);
    if (json === undefined) {
      // As the very last event it is the half of one, which the end of the body will tell.
      this.#unreadable = true;
      return;
    }
    const event = object(json);
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
        this.#ending = readEnding(object(event["delta"])) ?? this.#ending;
        return;
      case "message_stop":
        return this.end(out);
      case "error":
        throw toErrorFailure(event, { begun: this.#content.begun });
    }
  }

  /** The reason for ending may have come without the event that marks the end; without the reason it is no answer. */
  end(out: CompletionChunk[]): void {
    if (this.#ending === undefined) throw truncated();
    this.#complete = true;
    sayEnding(this.#ending, { content: this.#content, usage: this.#usage }, out);
  }
}

const truncated = (): Failure =>
  new Failure("upstream_protocol", "The upstream provider closed the stream before it was complete.", {
    upstreamStatus: 200,
  });

const unreadable = (): Failure =>
  new Failure("upstream_protocol", "The upstream provider's answer could not be read.", { upstreamStatus: 200 });
