import type { Answer } from "../answer.ts";
import type { StreamEvent } from "../dialect.ts";
import { encodeEnd, encodeEnvelope, encodeUsage, listCalls, toCallId } from "./response.ts";

/** One server-sent event. */
export function frame(data: unknown): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}

interface Delta {
  readonly kind: StreamEvent["kind"];
  readonly delta: Record<string, unknown>;
  readonly finishReason?: string | null;
}

function* encodeDeltas(answer: Answer): Generator<Delta> {
  const calls = listCalls(answer);
  const content = calls.length > 0 ? null : "";
  yield { kind: "frame", delta: { role: "assistant", content, refusal: null } };
  for (const part of answer.parts) {
    if (part.kind === "reasoning" && part.form === "shown") {
      for (const text of part.tokens) yield { kind: "content", delta: { reasoning_content: text } };
    }
    if (part.kind === "text") for (const text of part.tokens) yield { kind: "content", delta: { content: text } };
  }
  for (const [index, call] of calls.entries()) {
    const start = { index, id: toCallId(call.id), type: "function", function: { name: call.name, arguments: "" } };
    yield { kind: "frame", delta: { tool_calls: [start] } };
    for (const piece of call.tokens) {
      yield { kind: "content", delta: { tool_calls: [{ index, function: { arguments: piece } }] } };
    }
  }
  if (answer.end) yield { kind: "finish", delta: {}, finishReason: encodeEnd(answer) };
}

/** The choices as chunks, one choice after the other, with usage at the end when it was asked for. */
export function* encodeEvents(answers: readonly Answer[], withUsage: "usage" | "no usage"): Generator<StreamEvent> {
  const hasUsage = withUsage === "usage";
  const envelope = { ...encodeEnvelope(answers), object: "chat.completion.chunk", service_tier: "default" };
  for (const [index, answer] of answers.entries()) {
    for (const { kind, delta, finishReason = null } of encodeDeltas(answer)) {
      const choices = [{ index, delta, logprobs: null, finish_reason: finishReason }];
      yield { kind, text: frame({ ...envelope, choices, ...(hasUsage ? { usage: null } : {}) }) };
    }
  }
  if (answers.some((answer) => answer.end === undefined)) return;
  if (hasUsage) yield { kind: "frame", text: frame({ ...envelope, choices: [], usage: encodeUsage(answers) }) };
  yield { kind: "finish", text: "data: [DONE]\n\n" };
}
