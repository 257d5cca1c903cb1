import type { Answer, CallPart, Part, TextPart } from "../answer.ts";
import type { StreamEvent } from "../dialect.ts";
import { encodeEnd, encodeEnvelope, encodeUsage, toCallId } from "./response.ts";

/** One server-sent event: its name is the `type` of its data. */
export function frame(data: { readonly type: string } & Record<string, unknown>): string {
  return `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
}

function toFrame(data: Parameters<typeof frame>[0]): StreamEvent {
  return { kind: "frame", text: frame(data) };
}

function* encodeText(part: TextPart, index: number): Generator<StreamEvent> {
  yield toFrame({ type: "content_block_start", index, content_block: { type: "text", text: "" } });
  if (index === 0) yield toFrame({ type: "ping" });
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

function* encodeBlock(part: Part, index: number): Generator<StreamEvent> {
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
  for (const [index, part] of blocks.entries()) yield* encodeBlock(part, index);
  if (!answer.end) return;
  const usage = encodeUsage(answer, answer.usage.completionTokens);
  yield { kind: "finish", text: frame({ type: "message_delta", delta: encodeEnd(answer), usage }) };
  yield { kind: "finish", text: frame({ type: "message_stop" }) };
}
