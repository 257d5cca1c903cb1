import type { Answer, Part, ReasoningPart } from "../answer.ts";
import { sealBlock } from "./seal.ts";

const STOP_REASONS = { done: "end_turn", calls: "tool_use", length: "max_tokens", stop: "stop_sequence" } as const;

export function toCallId(id: string): string {
  return `toolu_01${id}`;
}

/** Why the message ended, as both the whole message and the last delta say it. */
export function encodeEnd({ end }: Answer): {
  stop_reason: string | null;
  stop_sequence: string | null;
  stop_details: null;
} {
  return {
    stop_reason: end ? STOP_REASONS[end.kind] : null,
    stop_sequence: end?.kind === "stop" ? end.sequence : null,
    stop_details: null,
  };
}

export function encodeUsage({ usage }: Answer, outputTokens: number): Record<string, unknown> {
  return {
    input_tokens: usage.promptTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: outputTokens,
    ...(usage.reasoningTokens > 0 ? { output_tokens_details: { thinking_tokens: usage.reasoningTokens } } : {}),
    service_tier: "standard",
  };
}

/** A reasoning block as it is when it is complete. */
export type ThinkingBlock =
  | { readonly type: "thinking"; readonly thinking: string; readonly signature: string }
  | { readonly type: "redacted_thinking"; readonly data: string };

/** A piece of an answer's reasoning as a block, which comes back with the next request to be verified. */
export function encodeThinking({ id, parts }: Answer, part: ReasoningPart): ThinkingBlock {
  const pieces = parts.filter((other) => other.kind === "reasoning");
  const place = { answer: id, index: pieces.indexOf(part), count: pieces.length };
  if (part.form === "redacted") return { type: "redacted_thinking", data: sealBlock(place, "") };
  const thinking = part.form === "shown" ? part.tokens.join("") : "";
  return { type: "thinking", thinking, signature: sealBlock(place, thinking) };
}

function encodePart(answer: Answer, part: Part): unknown[] {
  switch (part.kind) {
    case "reasoning":
      return [encodeThinking(answer, part)];
    case "text":
      return [{ type: "text", text: part.tokens.join(""), citations: null }];
    case "call":
      return [{ type: "tool_use", id: toCallId(part.id), name: part.name, input: part.input }];
    case "image":
    default:
      // This dialect has no pictures in answers.
      return [];
  }
}

/** The fields that a message has whatever its content. */
export function encodeEnvelope(answer: Answer): Record<string, unknown> {
  return { id: `msg_01${answer.id.slice(0, 22)}`, type: "message", role: "assistant", model: answer.model };
}

/** A whole message. */
export function encodeMessage(answer: Answer): unknown {
  return {
    ...encodeEnvelope(answer),
    content: answer.parts.flatMap((part) => encodePart(answer, part)),
    ...encodeEnd(answer),
    usage: encodeUsage(answer, answer.usage.completionTokens),
  };
}
