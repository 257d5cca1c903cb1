import { FinishReason } from "../../../gen/parley/v1/completion_pb.js";
import { type Citation, DocumentUnit, type NativeBlock } from "../../../gen/parley/v1/message_pb.js";
import type { Usage } from "../../../gen/parley/v1/usage_pb.js";
import { type JsonObject, readNative, readObject, readTyped } from "../native.ts";
import { DIALECT } from "./blocks.ts";
import { writeState } from "./state.ts";

/*
 * Parts of an answer in this format, the same for whole answers and streams.
 */

const ID = /^chatcmpl-/;

/** The message's ID: that of the completion, with the vendor's prefix. */
export function messageId(completionId: string): string {
  return completionId.replace(ID, "msg_");
}

/** The ending of a choice. */
export interface Ended {
  readonly finishReason: FinishReason;
  readonly nativeFinishReason: string;
  readonly stopSequence: string;
}

/** `stop_reason`, `stop_sequence` and `stop_details`. `refusal`: why the model did not answer; empty if it did. */
export function stop(ended: Ended, refusal: string): object {
  const reason = refusal === "" ? stopReason(ended) : "refusal";
  return {
    stop_reason: reason,
    stop_sequence: ended.stopSequence === "" ? null : ended.stopSequence,
    ...(reason === "refusal" && {
      stop_details: { type: "refusal", category: null, explanation: refusal === "" ? null : refusal },
    }),
  };
}

function stopReason({ finishReason, nativeFinishReason: native, stopSequence }: Ended): string {
  switch (finishReason) {
    case FinishReason.LENGTH:
      return native === "model_context_window_exceeded" ? native : "max_tokens";
    case FinishReason.TOOL_CALLS:
      return "tool_use";
    case FinishReason.CONTENT_FILTER:
      return "refusal";
    case FinishReason.PAUSE:
      return "pause_turn";
    case FinishReason.STOP:
    case FinishReason.OTHER:
    case FinishReason.UNSPECIFIED:
      return stopSequence !== "" || native === "stop_sequence" ? "stop_sequence" : "end_turn";
  }
}

/** `usage`. Input tokens exclude those of the provider's cache. */
export function usage(of: Usage): object {
  const cached = of.cachedInputTokens ?? 0;
  const written = of.cacheWriteInputTokens ?? 0;
  const reasoning = of.reasoningOutputTokens ?? 0;
  return {
    input_tokens: Math.max(of.inputTokens - cached - written, 0),
    cache_creation_input_tokens: written,
    ...(of.cacheWriteHourInputTokens !== undefined && {
      cache_creation: {
        ephemeral_5m_input_tokens: Math.max(written - of.cacheWriteHourInputTokens, 0),
        ephemeral_1h_input_tokens: of.cacheWriteHourInputTokens,
      },
    }),
    cache_read_input_tokens: cached,
    output_tokens: of.outputTokens,
    ...(reasoning > 0 && { output_tokens_details: { thinking_tokens: reasoning } }),
    ...(of.webSearches !== undefined && { server_tool_use: { web_search_requests: of.webSearches } }),
  };
}

/** `usage` with estimates, without the provider's token counts. */
export function estimatedUsage(inputTokens: number, outputTokens: number): object {
  return {
    input_tokens: inputTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: outputTokens,
  };
}

/** Types of citations of documents, and the names of their first and last index. */
const RANGES = {
  [DocumentUnit.CHARACTERS]: ["char_location", "start_char_index", "end_char_index"],
  [DocumentUnit.PAGES]: ["page_location", "start_page_number", "end_page_number"],
  [DocumentUnit.BLOCKS]: ["content_block_location", "start_block_index", "end_block_index"],
} as const;

/** A citation; undefined for one of another source. */
export function citation({ source, title, citedText }: Citation): object | undefined {
  const cited = { cited_text: citedText };
  if (source.case === "url") {
    const more = { url: source.value, title: title === "" ? null : title, encrypted_index: "" };
    return { type: "web_search_result_location", ...cited, ...more };
  }
  if (source.case === "native") return readTyped(source.value, DIALECT);
  if (source.case !== "document") return undefined;
  const { documentIndex, unit, start, end } = source.value;
  if (unit === DocumentUnit.UNSPECIFIED) return undefined;
  const [type, first, last] = RANGES[unit];
  const document = { document_index: documentIndex, document_title: title === "" ? null : title, file_id: null };
  return { type, ...cited, ...document, [first]: start, [last]: end };
}

/** A block without text that holds the state of a text or a call. */
export function stateBlock(signature: string, toolCall?: string) {
  return { type: "thinking", thinking: "", signature: writeState({ toolCall, signature }) };
}

/** A native block in the provider's JSON; undefined for a block of another dialect. */
export function nativeBlock(block: Pick<NativeBlock, "dialect" | "json">): JsonObject | undefined {
  return readNative(block, DIALECT);
}

/** A call's input, which must be an object. Other arguments, such as those of a truncated call, become its only field. */
export function toInput(argumentsJson: string): object {
  if (argumentsJson.trim() === "") return {};
  return readObject(argumentsJson) ?? { arguments: argumentsJson };
}
