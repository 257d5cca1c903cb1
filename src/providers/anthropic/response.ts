import type { CompletionChunk } from "../../../gen/parley/v1/completion_pb.js";
import { AnswerBuilder } from "../../core/answer-builder.ts";
import { PartBudget } from "../../core/part-budget.ts";
import type { Answer } from "../../core/provider.ts";
import { array, object, string } from "../wire/json.ts";
import { isSmallEvent } from "../wire/native-words.ts";
import { keepAll, type Redact } from "../wire/redaction.ts";
import { incomplete, truncated } from "../wire/response-failure.ts";
import type { StreamReader } from "../wire/response.ts";
import { EventJson, isEndMarker, type SseEvent } from "../wire/sse.ts";
import { AnswerContent } from "./answer-content.ts";
import { toInBandFailure } from "./failure.ts";
import { type Finish, readFinish, writeFinish } from "./finish-reason.ts";
import { MessageFields } from "./message-fields.ts";
import { UsageCount } from "./usage.ts";

/** Reads the events of one streamed answer. Ignores pings. */
export class AnswerStream implements StreamReader {
  readonly #content: AnswerContent;
  readonly #usage = new UsageCount();
  readonly #fields: MessageFields;
  readonly #events = new EventJson();
  #finish: Finish | undefined;
  #complete = false;

  readonly #redact: Redact;

  /** `redact` takes the provider's credentials out of its errors. */
  constructor(redact: Redact = keepAll) {
    this.#redact = redact;
    const budget = new PartBudget();
    this.#content = new AnswerContent(budget, redact);
    this.#fields = new MessageFields(budget);
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
      case "message_start": {
        const message = object(event["message"]);
        this.#fields.add(message);
        // The tokens of the answer come at its end; here they are a placeholder.
        return this.#usage.update({ ...object(message["usage"]), output_tokens: undefined });
      }
      case "content_block_start":
        return this.#content.open(event["index"], object(event["content_block"]), out);
      case "content_block_delta":
        return this.#content.add(event["index"], object(event["delta"]), out);
      case "content_block_stop":
        return this.#content.close(event["index"], out);
      case "message_delta":
        this.#fields.add(event);
        this.#usage.update(event["usage"]);
        this.#finish = readFinish(object(event["delta"])) ?? this.#finish;
        return;
      case "message_stop":
        return this.end(out);
      case "error":
        throw toInBandFailure(event, { begun: this.#content.begun, redact: this.#redact });
      case "ping":
        return;
      default:
        if (string(event["type"]) !== "" && isSmallEvent(data)) this.#content.addEvent(event, out);
    }
  }

  /** The end event may be missing. Without a stop reason the answer is incomplete and this throws `upstream_protocol`. */
  end(out: CompletionChunk[]): void {
    if (this.#finish === undefined) throw truncated();
    this.#complete = true;
    const details = this.#fields.read(this.#redact);
    writeFinish(this.#finish, { content: this.#content, usage: this.#usage, details }, out);
  }
}

/**
 * Converts a whole answer to chunks. Throws the failure of an error body with status 200, and `upstream_protocol` for an
 * unfinished answer.
 */
export function toAnswerChunks(json: unknown, redact = keepAll): CompletionChunk[] {
  const message = object(json);
  const blocks = message["content"];
  const usage = new UsageCount();
  usage.update(message["usage"]);
  // Blocks beside an error are an answer that broke off, which may be billed.
  if (message["type"] === "error" || isReported(message["error"]))
    throw toInBandFailure(message, { begun: array(blocks).length > 0, usage: usage.total(), redact });
  const finish = readFinish(message);
  if (!Array.isArray(blocks) || finish === undefined) throw incomplete();
  const out: CompletionChunk[] = [];
  const budget = new PartBudget();
  const content = new AnswerContent(budget, redact);
  blocks.forEach((block: unknown, index) => {
    content.open(index, object(block), out);
    content.close(index, out);
  });
  const fields = new MessageFields(budget);
  fields.add(message);
  writeFinish(finish, { content, usage, details: fields.read(redact) }, out);
  return out;
}

/** Some servers send `error: null`. */
const isReported = (error: unknown): boolean => error !== undefined && error !== null;

/** Converts a whole answer. Throws like `toAnswerChunks`. */
export function toAnswer(json: unknown, redact = keepAll): Answer {
  const builder = new AnswerBuilder();
  for (const chunk of toAnswerChunks(json, redact)) builder.add(chunk);
  return builder.build();
}
