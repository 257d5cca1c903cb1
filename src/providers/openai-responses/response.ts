import type { CompletionChunk } from "../../../gen/parley/v1/completion_pb.js";
import type { Usage } from "../../../gen/parley/v1/usage_pb.js";
import { AnswerBuilder } from "../../core/answer-builder.ts";
import { PartBudget } from "../../core/part-budget.ts";
import { usageChunk } from "../../core/chunks.ts";
import type { Answer } from "../../core/provider.ts";
import { type JsonSize, MAX_EVENT_JSON, MAX_RESPONSE_JSON } from "../../encoding/json-size.ts";
import { FurtherFields } from "../wire/further-fields.ts";
import { array, count, type Json, object, string } from "../wire/json.ts";
import { findError, toInBandFailure } from "../wire/openai-failure.ts";
import { isSmallEvent } from "../wire/native-words.ts";
import { keepAll, type Redact } from "../wire/redaction.ts";
import { incomplete, noOutput, truncated } from "../wire/response-failure.ts";
import type { StreamReader } from "../wire/response.ts";
import { EventJson, isEndMarker, type SseEvent } from "../wire/sse.ts";
import { AnswerContent, type Place } from "./answer-content.ts";
import { readFinish, toFinishReason } from "./finish-reason.ts";
import { readUsage } from "./usage.ts";

/**
 * Events that are read, with the limit of their JSON. Events with the larger limit repeat a text, an item or the whole response, with
 * the log probabilities of all its tokens.
 */
const READ: ReadonlyMap<string, JsonSize> = new Map([
  ["response.output_item.added", MAX_EVENT_JSON],
  ["response.output_text.delta", MAX_EVENT_JSON],
  ["response.refusal.delta", MAX_EVENT_JSON],
  ["response.reasoning_summary_text.delta", MAX_EVENT_JSON],
  ["response.reasoning_text.delta", MAX_EVENT_JSON],
  ["response.output_text.annotation.added", MAX_EVENT_JSON],
  ["response.function_call_arguments.delta", MAX_EVENT_JSON],
  ["response.custom_tool_call_input.delta", MAX_EVENT_JSON],
  ["response.image_generation_call.partial_image", MAX_EVENT_JSON],
  ["response.content_part.done", MAX_RESPONSE_JSON],
  ["response.output_item.done", MAX_RESPONSE_JSON],
  ["response.completed", MAX_RESPONSE_JSON],
  ["response.incomplete", MAX_RESPONSE_JSON],
  ["response.failed", MAX_RESPONSE_JSON],
]);

/** Events that only repeat content of their item or response, and keep-alive events. Formats write their own. */
const REPEATING: ReadonlySet<string> = new Set([
  "response.created",
  "response.queued",
  "response.in_progress",
  "response.content_part.added",
  "response.output_text.done",
  "response.refusal.done",
  "response.reasoning_summary_part.added",
  "response.reasoning_summary_part.done",
  "response.reasoning_summary_text.done",
  "response.reasoning_part.added",
  "response.reasoning_part.done",
  "response.reasoning_text.done",
  "response.function_call_arguments.done",
  "response.custom_tool_call_input.done",
  "response.image_generation_call.in_progress",
  "response.image_generation_call.generating",
  "response.image_generation_call.completed",
]);

/** Fields of a response that are read, or repeat the request. */
const OF_RESPONSE: ReadonlySet<string> = new Set([
  "status",
  "completed_at",
  "incomplete_details",
  "output",
  "output_text",
  "tool_usage",
  "background",
  "conversation",
  "instructions",
  "max_output_tokens",
  "max_tool_calls",
  "metadata",
  "parallel_tool_calls",
  "previous_response_id",
  "prompt",
  "reasoning",
  "safety_identifier",
  "prompt_cache_key",
  "service_tier",
  "store",
  "temperature",
  "text",
  "tool_choice",
  "tools",
  "top_logprobs",
  "top_p",
  "truncation",
  "user",
]);

/** The type of an event whose data begins with it, as most servers write it. */
const LEADING_TYPE = /^\s*\{\s*"type"\s*:\s*"([a-z_.]{1,64})"/;

/**
 * Reads the events of one stream. The last event repeats the whole response; only content that did not come before is read from it.
 * Ignores events that repeat the content of their item, and large events of unknown types.
 */
export class AnswerStream implements StreamReader {
  readonly #budget = new PartBudget();
  readonly #content: AnswerContent;
  readonly #events = new EventJson();
  readonly #redact: Redact;
  /** The provider's count of a response that failed. */
  #usage: Usage | undefined;
  /** Failure of a response that names no error. Azure names it in the event after it. */
  #unexplained: Error | undefined;
  #complete = false;

  /** `redact` removes the provider's credentials from its errors. */
  constructor(redact: Redact = keepAll) {
    this.#redact = redact;
    this.#content = new AnswerContent(this.#budget, redact);
  }

  get complete(): boolean {
    return this.#complete;
  }

  get finished(): boolean {
    return this.#unexplained !== undefined;
  }

  read({ event: name, data }: SseEvent, out: CompletionChunk[]): void {
    if (isEndMarker(data)) return this.end();
    const known = LEADING_TYPE.exec(data)?.[1] ?? name;
    const max = READ.get(known);
    // Ignored events are not parsed, because each may be as large as the response.
    if (max === undefined && (REPEATING.has(known) || (known.startsWith("response.") && !isSmallEvent(data)))) return;
    const event = object(this.#events.read(data, max));
    const type = string(event["type"]) || name;
    switch (type) {
      case "response.output_item.added":
        return this.#content.begin(toIndex(event["output_index"]), object(event["item"]), out);
      case "response.output_text.delta": {
        const piece = { case: "text", value: string(event["delta"]), logprobs: event["logprobs"] } as const;
        return this.#content.add(toContentPlace(event), piece, out);
      }
      case "response.refusal.delta":
        return this.#content.add(toContentPlace(event), { case: "refusal", value: string(event["delta"]) }, out);
      case "response.reasoning_summary_text.delta":
        return this.#content.add(toSummaryPlace(event), { case: "reasoning", value: string(event["delta"]) }, out);
      case "response.reasoning_text.delta":
        return this.#content.add(toContentPlace(event), { case: "reasoning", value: string(event["delta"]) }, out);
      case "response.output_text.annotation.added":
        return this.#content.cite(toContentPlace(event), object(event["annotation"]), out);
      case "response.content_part.done":
        return this.#content.endText(toContentPlace(event), object(event["part"]), out);
      case "response.function_call_arguments.delta":
      case "response.custom_tool_call_input.delta":
        return this.#content.addInput(toIndex(event["output_index"]), string(event["delta"]), out);
      case "response.image_generation_call.partial_image":
        return this.#content.addPartialImage(event, out);
      case "response.output_item.done":
        return this.#content.end(toIndex(event["output_index"]), object(event["item"]), out);
      case "response.failed": {
        const response = object(event["response"]);
        if (response["error"]) return this.readResponse({ status: "failed", ...response }, out);
        this.#unexplained = this.#toFailureOf(response);
        return;
      }
      case "response.completed":
      case "response.incomplete":
        return this.readResponse({ status: type.slice("response.".length), ...object(event["response"]) }, out);
      case "error":
        throw this.#toFailure(findError(event) ?? event);
      default:
        // Some servers answer with an error in place of an event.
        if (event["error"]) throw this.#toFailure(event["error"]);
        if (type.startsWith("response.") && isSmallEvent(data)) this.#content.addEvent({ ...event, type }, out);
    }
  }

  /** Reads the whole response. Throws its failure, and `upstream_protocol` for one that has not ended or has no content. */
  readResponse(response: Json, out: CompletionChunk[]): void {
    const { status, error, output, usage, tool_usage: ofTools } = response;
    if (error || status === "failed" || status === "cancelled") throw this.#toFailureOf(response);
    const finish = readFinish(response);
    if (finish === undefined) throw incomplete();
    this.#content.endRest(array(output), out);
    const called = this.#content.called;
    if (finish.status === "completed" && !this.#content.begun) throw noOutput();
    const native = finish.reason || finish.status;
    const further = new FurtherFields("openai-responses.", OF_RESPONSE, this.#budget);
    further.add(response);
    const details = further.read(this.#redact);
    this.#content.finish({ reason: toFinishReason(finish, { called }), native, details }, out);
    const counted = readUsage(usage, ofTools, this.#content);
    if (counted !== undefined) out.push(usageChunk(counted));
    this.#complete = true;
  }

  /** A stream ends with its last event. Throws the failure of an unexplained response, or `upstream_protocol`. */
  end(): void {
    throw this.#unexplained ?? truncated();
  }

  #toFailureOf({ error, usage, tool_usage: ofTools }: Json): Error {
    this.#usage = readUsage(usage, ofTools, this.#content);
    return this.#toFailure(error);
  }

  #toFailure(error: unknown): Error {
    return toInBandFailure(error, { begun: this.#content.begun, usage: this.#usage, redact: this.#redact });
  }
}

/** A place in a list; 0 for anything else. */
const toIndex = (value: unknown): number => count(value) ?? 0;

function toContentPlace({ output_index: item, content_index: index }: Json): Place {
  return { item: toIndex(item), list: "content", index: toIndex(index) };
}

function toSummaryPlace({ output_index: item, summary_index: index }: Json): Place {
  return { item: toIndex(item), list: "summary", index: toIndex(index) };
}

/**
 * Reads a whole response. Throws its failure, that of an error object, and `upstream_protocol` for an invalid or unfinished one.
 */
export function toAnswer(json: unknown, redact = keepAll): Answer {
  const builder = new AnswerBuilder();
  for (const chunk of toAnswerChunks(json, redact)) builder.add(chunk);
  return builder.build();
}

/** Reads a whole response into chunks. */
export function toAnswerChunks(json: unknown, redact = keepAll): CompletionChunk[] {
  const error = findError(json);
  const response = object(json);
  const out: CompletionChunk[] = [];
  new AnswerStream(redact).readResponse(error === undefined ? response : { ...response, error }, out);
  return out;
}
