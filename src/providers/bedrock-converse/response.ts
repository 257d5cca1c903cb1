import type { CompletionChunk } from "../../../gen/parley/v1/completion_pb.js";
import type { Usage } from "../../../gen/parley/v1/usage_pb.js";
import { AnswerBuilder } from "../../core/answer-builder.ts";
import { usageChunk } from "../../core/chunks.ts";
import type { Answer } from "../../core/provider.ts";
import { toExceptionFailure } from "../wire/bedrock.ts";
import type { EventStreamMessage } from "../wire/event-stream.ts";
import { type Json, object, string } from "../wire/json.ts";
import { keepAll, type Redact } from "../wire/redaction.ts";
import { incomplete, truncated } from "../wire/response-failure.ts";
import type { StreamReader } from "../wire/response.ts";
import { EventJson } from "../wire/sse.ts";
import { AnswerContent } from "./answer-content.ts";
import { toFinishReason } from "./finish-reason.ts";
import { readUsage } from "./usage.ts";

/** Reads the messages of one streamed answer. Ignores events of unknown types. */
export class AnswerStream implements StreamReader<EventStreamMessage> {
  readonly #content = new AnswerContent();
  readonly #events = new EventJson();
  readonly #redact: Redact;
  #stop: Json | undefined;
  #usage: Usage | undefined;
  #complete = false;

  /** `redact` takes the provider's credentials out of its errors. */
  constructor(redact: Redact = keepAll) {
    this.#redact = redact;
  }

  get complete(): boolean {
    return this.#complete;
  }

  /** Whether the stop reason has arrived. Only the usage may still follow. */
  get finished(): boolean {
    return this.#stop !== undefined;
  }

  read(message: EventStreamMessage, out: CompletionChunk[]): void {
    if (message.kind === "exception")
      throw toExceptionFailure(message, { begun: this.#content.begun, redact: this.#redact });
    const event = object(this.#events.read(message.data));
    switch (message.type) {
      case "contentBlockStart":
        return this.#content.open(event["contentBlockIndex"], object(event["start"]), out);
      case "contentBlockDelta":
        return this.#content.add(event["contentBlockIndex"], object(event["delta"]), out);
      case "contentBlockStop":
        return this.#content.close(event["contentBlockIndex"], out);
      case "messageStop":
        this.#stop = event;
        return;
      case "metadata":
        this.#usage = readUsage(event["usage"]);
        if (this.#stop !== undefined) this.end(out);
    }
  }

  /** The usage may be missing. Without a stop reason the answer is incomplete and this throws `upstream_protocol`. */
  end(out: CompletionChunk[]): void {
    if (this.#stop === undefined || string(this.#stop["stopReason"]) === "") throw truncated();
    this.#complete = true;
    writeFinish(this.#content, { stop: this.#stop, usage: this.#usage }, out);
  }
}

/** Converts a whole answer to chunks. Throws `upstream_protocol` for an unfinished answer. */
export function toAnswerChunks(json: unknown): CompletionChunk[] {
  const answer = object(json);
  const blocks = object(object(answer["output"])["message"])["content"];
  if (!Array.isArray(blocks) || string(answer["stopReason"]) === "") throw incomplete();
  const out: CompletionChunk[] = [];
  const content = new AnswerContent();
  for (const block of blocks) content.addWhole(object(block), out);
  writeFinish(content, { stop: answer, usage: readUsage(answer["usage"]) }, out);
  return out;
}

/** Converts a whole answer. Throws like `toAnswerChunks`. */
export function toAnswer(json: unknown): Answer {
  const builder = new AnswerBuilder();
  for (const chunk of toAnswerChunks(json)) builder.add(chunk);
  return builder.build();
}

function writeFinish(
  content: AnswerContent,
  { stop, usage }: { readonly stop: Json; readonly usage: Usage | undefined },
  out: CompletionChunk[],
): void {
  const native = string(stop["stopReason"]);
  const stopSequence = string(object(stop["additionalModelResponseFields"])["stop_sequence"]);
  content.finish({ reason: toFinishReason(native, content), native, stopSequence }, out);
  if (usage !== undefined) out.push(usageChunk(usage));
}
