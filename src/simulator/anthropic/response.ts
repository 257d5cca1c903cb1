import type { Answer, Part } from "../answer.ts";

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
    service_tier: "standard",
  };
}

function encodePart(part: Part): unknown[] {
  switch (part.kind) {
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
    content: answer.parts.flatMap(encodePart),
    ...encodeEnd(answer),
    usage: encodeUsage(answer, answer.usage.completionTokens),
  };
}
