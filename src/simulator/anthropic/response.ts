import type { Answer, CallPart, Part, ReasoningPart, TextPart } from "../answer.ts";
import type { StreamEvent } from "../dialect.ts";
import { sealBlock } from "./thinking.ts";

const STOP_REASONS = { done: "end_turn", calls: "tool_use", length: "max_tokens", stop: "stop_sequence" } as const;

export function toCallId(id: string): string {
  return `toolu_01${id}`;
}

/** Stop fields of a whole message and of the last delta. */
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

/** A complete reasoning block. */
export type ThinkingBlock =
  | { readonly type: "thinking"; readonly thinking: string; readonly signature: string }
  | { readonly type: "redacted_thinking"; readonly data: string };

/** Encodes a reasoning part as a block with a signature, which the next request sends back for verification. */
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
      // Answers of this dialect have no images.
      return [];
  }
}

/** Message fields that do not depend on the content. */
export function encodeEnvelope(answer: Answer): Record<string, unknown> {
  return { id: `msg_01${answer.id.slice(0, 22)}`, type: "message", role: "assistant", model: answer.model };
}

export function encodeMessage(answer: Answer): unknown {
  return {
    ...encodeEnvelope(answer),
    content: answer.parts.flatMap((part) => encodePart(answer, part)),
    ...encodeEnd(answer),
    usage: encodeUsage(answer, answer.usage.completionTokens),
  };
}

/** One server-sent event. The event name is the `type` of its data. */
export function frame(data: { readonly type: string } & Record<string, unknown>): string {
  return `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
}

function toFrame(data: Parameters<typeof frame>[0]): StreamEvent {
  return { kind: "frame", text: frame(data) };
}

/** A ping follows the start of the first text or reasoning block, as in the real API. */
function* openBlock(
  block: { readonly type: string } & Readonly<Record<string, unknown>>,
  index: number,
): Generator<StreamEvent> {
  yield toFrame({ type: "content_block_start", index, content_block: block });
  if (index === 0) yield toFrame({ type: "ping" });
}

function* encodeText(part: TextPart, index: number): Generator<StreamEvent> {
  yield* openBlock({ type: "text", text: "" }, index);
  for (const text of part.tokens) {
    yield { kind: "content", text: frame({ type: "content_block_delta", index, delta: { type: "text_delta", text } }) };
  }
}

function* encodeCall(part: CallPart, index: number): Generator<StreamEvent> {
  const block = { type: "tool_use", id: toCallId(part.id), name: part.name, input: {} };
  yield { kind: "content", text: frame({ type: "content_block_start", index, content_block: block }) };
  // The real API starts with an empty delta, and sends no other for a call without arguments.
  const pieces = Object.keys(part.input).length === 0 ? [""] : ["", ...part.tokens];
  for (const piece of pieces) {
    const delta = { type: "input_json_delta", partial_json: piece };
    yield { kind: piece === "" ? "frame" : "content", text: frame({ type: "content_block_delta", index, delta }) };
  }
}

/** Streams readable reasoning as deltas, and the signature as the last delta. Redacted blocks have no deltas. */
function* encodeReasoning(answer: Answer, part: ReasoningPart, index: number): Generator<StreamEvent> {
  const block = encodeThinking(answer, part);
  if (block.type === "redacted_thinking") {
    yield* openBlock(block, index);
    return;
  }
  yield* openBlock({ ...block, thinking: "", signature: "" }, index);
  for (const thinking of part.form === "shown" ? part.tokens : []) {
    const delta = { type: "thinking_delta", thinking };
    yield { kind: "content", text: frame({ type: "content_block_delta", index, delta }) };
  }
  const delta = { type: "signature_delta", signature: block.signature };
  yield toFrame({ type: "content_block_delta", index, delta });
}

function* encodeBlock(answer: Answer, part: Part, index: number): Generator<StreamEvent> {
  if (part.kind === "reasoning") yield* encodeReasoning(answer, part, index);
  if (part.kind === "text") yield* encodeText(part, index);
  if (part.kind === "call") yield* encodeCall(part, index);
  yield toFrame({ type: "content_block_stop", index });
}

/** Encodes a message as stream events. */
export function* encodeEvents(answer: Answer): Generator<StreamEvent> {
  const message = {
    ...encodeEnvelope(answer),
    content: [],
    stop_reason: null,
    stop_sequence: null,
    stop_details: null,
  };
  yield toFrame({ type: "message_start", message: { ...message, usage: encodeUsage(answer, 1) } });
  const blocks = answer.parts.filter((part) => part.kind !== "image");
  for (const [index, part] of blocks.entries()) yield* encodeBlock(answer, part, index);
  if (!answer.end) return;
  const usage = encodeUsage(answer, answer.usage.completionTokens);
  yield { kind: "finish", text: frame({ type: "message_delta", delta: encodeEnd(answer), usage }) };
  yield { kind: "finish", text: frame({ type: "message_stop" }) };
}
