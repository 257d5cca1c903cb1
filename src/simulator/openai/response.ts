import { type Answer, type CallPart, joinReasoning, joinText } from "../answer.ts";
import type { StreamEvent } from "../dialect.ts";

const FINISH_REASONS = { done: "stop", stop: "stop", calls: "tool_calls", length: "length" } as const;

export function toCallId(id: string): string {
  return `call_${id}`;
}

/** Finish reason of a choice; null without an end. */
export function encodeEnd({ end }: Answer): string | null {
  return end ? FINISH_REASONS[end.kind] : null;
}

/** Usage of all choices. The prompt counts once. */
export function encodeUsage(answers: readonly Answer[]): Record<string, unknown> {
  const promptTokens = answers[0]?.usage.promptTokens ?? 0;
  const reasoningTokens = answers.reduce((sum, answer) => sum + answer.usage.reasoningTokens, 0);
  const completionTokens = answers.reduce((sum, answer) => sum + answer.usage.completionTokens, 0);
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: reasoningTokens,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  };
}

/** Fields of a completion and of each chunk. */
export function encodeEnvelope(answers: readonly Answer[]): { id: string; created: number; model: string } {
  const [first] = answers;
  return {
    id: `chatcmpl-${first?.id ?? ""}`,
    created: Math.floor(Date.now() / 1000),
    model: first?.model ?? "",
  };
}

/** Returns the calls of an answer, in order. */
export function listCalls({ parts }: Answer): CallPart[] {
  return parts.filter((part) => part.kind === "call");
}

function encodeChoice(answer: Answer, index: number): unknown {
  const calls = listCalls(answer).map((call) => ({
    id: toCallId(call.id),
    type: "function",
    function: { name: call.name, arguments: call.tokens.join("") },
  }));
  const reasoning = joinReasoning(answer.parts);
  const message = {
    role: "assistant",
    ...(reasoning === "" ? {} : { reasoning_content: reasoning }),
    content: calls.length > 0 ? null : joinText(answer.parts),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
    refusal: null,
    annotations: [],
  };
  return { index, message, logprobs: null, finish_reason: encodeEnd(answer) };
}

export function encodeCompletion(answers: readonly Answer[]): unknown {
  return {
    ...encodeEnvelope(answers),
    object: "chat.completion",
    choices: answers.map(encodeChoice),
    usage: encodeUsage(answers),
    service_tier: "default",
    system_fingerprint: null,
  };
}

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
    for (const token of call.tokens) {
      yield { kind: "content", delta: { tool_calls: [{ index, function: { arguments: token } }] } };
    }
  }
  if (answer.end) yield { kind: "finish", delta: {}, finishReason: encodeEnd(answer) };
}

/** Encodes the choices as chunks, one choice after the other, with usage at the end if requested. */
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
