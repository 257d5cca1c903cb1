import type { Answer, CallPart, Part, ReasoningPart, TextPart } from "../answer.ts";
import type { StreamEvent } from "../dialect.ts";
import { encodeEnd, encodeEnvelope, encodeThinking, encodeUsage, toCallId } from "./response.ts";

/** One server-sent event: its name is the `type` of its data. */
export function frame(data: { readonly type: string } & Record<string, unknown>): string {
  return `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
}

function toFrame(data: Parameters<typeof frame>[0]): StreamEvent {
  return { kind: "frame", text: frame(data) };
}

/** The first block of text or reasoning is followed by a ping, as at the real service. */
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
  // The real service opens with an empty piece, and sends nothing more for a call without arguments.
  const pieces = Object.keys(part.input).length === 0 ? [""] : ["", ...part.tokens];
  for (const piece of pieces) {
    const delta = { type: "input_json_delta", partial_json: piece };
    yield { kind: piece === "" ? "frame" : "content", text: frame({ type: "content_block_delta", index, delta }) };
  }
}

/** Only reasoning that may be read comes in pieces; its signature is the last of them. */
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

/** A message as events. */
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
