import { type Answer, countTokens, joinText, type Part } from "../answer.ts";
import type { StreamEvent } from "../dialect.ts";
import { describeCall, sign } from "./thinking.ts";

const FINISH_REASONS = { done: "STOP", calls: "STOP", stop: "STOP", length: "MAX_TOKENS" } as const;

/**
 * Encodes the parts of an answer. Of parallel calls only the first has a signature. Every image has one, and text has
 * one after reasoning. Without `includeThoughts` thoughts are counted but not sent.
 */
export function encodeParts(parts: readonly Part[]): Record<string, unknown>[] {
  return parts.flatMap((part) => encodePart(part, parts));
}

/** Encodes one part of an answer. Empty for hidden reasoning. */
export function encodePart(part: Part, parts: readonly Part[]): Record<string, unknown>[] {
  switch (part.kind) {
    case "reasoning":
      return part.form === "shown" ? [{ text: part.tokens.join(""), thought: true }] : [];
    case "text":
      return [{ text: part.tokens.join(""), ...signText(parts) }];
    case "image": {
      const inlineData = { mimeType: part.mediaType, data: part.bytes.toString("base64") };
      return [{ inlineData, thoughtSignature: sign(`picture of ${part.bytes.length} bytes`) }];
    }
    case "call":
    default: {
      const functionCall = { id: part.id, name: part.name, args: part.input };
      const isFirst = part === parts.find((other) => other.kind === "call");
      return [{ functionCall, ...(isFirst ? { thoughtSignature: sign(describeCall(part.name, part.input)) } : {}) }];
    }
  }
}

/** Returns the signature of an answer's text. A stream sends it on the last, empty part. */
export function signText(parts: readonly Part[]): { thoughtSignature?: string } {
  const isThought = parts.some((part) => part.kind === "reasoning") && parts.some((part) => part.kind === "text");
  return isThought ? { thoughtSignature: sign(joinText(parts)) } : {};
}

/** Finish reason of a candidate, also in the last chunk of a stream. */
export function encodeEnd({ end }: Answer): { finishReason?: string } {
  return end ? { finishReason: FINISH_REASONS[end.kind] } : {};
}

/** Usage after `sentTokens` answer tokens, including thoughts. A stream sends running totals. */
export function encodeUsage({ usage, parts }: Answer, sentTokens: number): Record<string, unknown> {
  const promptTokensDetails = [
    { modality: "TEXT", tokenCount: usage.promptTextTokens },
    ...(usage.promptImageTokens > 0 ? [{ modality: "IMAGE", tokenCount: usage.promptImageTokens }] : []),
  ];
  const imageTokens = parts.reduce((sum, part) => sum + (part.kind === "image" ? countTokens(part) : 0), 0);
  const isWhole = sentTokens === usage.completionTokens;
  const thoughtsTokenCount = Math.min(sentTokens, usage.reasoningTokens);
  return {
    promptTokenCount: usage.promptTokens,
    candidatesTokenCount: sentTokens - thoughtsTokenCount,
    ...(thoughtsTokenCount > 0 ? { thoughtsTokenCount } : {}),
    totalTokenCount: usage.promptTokens + sentTokens,
    promptTokensDetails,
    ...(isWhole && imageTokens > 0
      ? { candidatesTokensDetails: [{ modality: "IMAGE", tokenCount: imageTokens }] }
      : {}),
  };
}

/** Fields of a response and of each chunk. */
export function encodeEnvelope(answer: Answer): Record<string, unknown> {
  return { modelVersion: answer.model, responseId: answer.id.slice(0, 22) };
}

/** A whole response. A candidate without parts has no `content`. */
export function encodeResponse(answer: Answer): unknown {
  const parts = encodeParts(answer.parts);
  const content = parts.length > 0 ? { content: { parts, role: "model" } } : {};
  return {
    candidates: [{ ...content, ...encodeEnd(answer), index: 0 }],
    usageMetadata: encodeUsage(answer, answer.usage.completionTokens),
    ...encodeEnvelope(answer),
  };
}

interface Step {
  readonly parts: readonly Record<string, unknown>[];
  readonly tokens: number;
}

/** Splits text and thoughts into tokens; images and calls are single steps. Hidden parts are only counted. */
function* splitAnswer({ parts }: Answer): Generator<Step> {
  let unseen = 0;
  for (const part of parts) {
    if (part.kind === "reasoning" && part.form !== "shown") unseen += countTokens(part);
    else if (part.kind === "text" || part.kind === "reasoning") {
      const mark = part.kind === "reasoning" ? { thought: true } : {};
      for (const text of part.tokens) {
        yield { parts: [{ text, ...mark }], tokens: unseen + 1 };
        unseen = 0;
      }
    } else {
      yield { parts: encodePart(part, parts), tokens: unseen + countTokens(part) };
      unseen = 0;
    }
  }
}

function* encodeChunks(answer: Answer): Generator<{ kind: "content" | "finish"; chunk: unknown }> {
  let sent = 0;
  for (const { parts, tokens } of splitAnswer(answer)) {
    sent += tokens;
    const candidates = [{ content: { parts, role: "model" }, index: 0 }];
    const chunk = { candidates, usageMetadata: encodeUsage(answer, sent), ...encodeEnvelope(answer) };
    yield { kind: "content", chunk };
  }
  if (!answer.end) return;
  const content = sent > 0 ? { content: { parts: [{ text: "", ...signText(answer.parts) }], role: "model" } } : {};
  const candidates = [{ ...content, ...encodeEnd(answer), index: 0 }];
  const usageMetadata = encodeUsage(answer, answer.usage.completionTokens);
  yield { kind: "finish", chunk: { candidates, usageMetadata, ...encodeEnvelope(answer) } };
}

/** One server-sent event, with the line endings of the real API. */
export function frame(data: unknown): string {
  return `data: ${JSON.stringify(data)}\r\n\r\n`;
}

/** Stream with `alt=sse`: one event per chunk, without an end marker. */
export function* encodeEvents(answer: Answer): Generator<StreamEvent> {
  for (const { kind, chunk } of encodeChunks(answer)) yield { kind, text: frame(chunk) };
}

/** Stream without `alt=sse`: one JSON array, sent incrementally. */
export function* encodeArray(answer: Answer): Generator<StreamEvent> {
  let lead = "[";
  for (const { kind, chunk } of encodeChunks(answer)) {
    yield { kind, text: lead + JSON.stringify(chunk) };
    lead = ",\r\n";
  }
  yield { kind: "frame", text: lead === "[" ? "[]" : "]" };
}
