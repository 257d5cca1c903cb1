import { countTokens, joinText, type Answer, type Part } from "../answer.ts";
import { describeCall, sign } from "./thinking.ts";

const FINISH_REASONS = { done: "STOP", calls: "STOP", stop: "STOP", length: "MAX_TOKENS" } as const;

/**
 * The parts of an answer. Only the first of parallel calls carries a signature, every picture does, and text does when
 * it was thought about. Thoughts without `includeThoughts` are only counted.
 */
export function encodeParts(parts: readonly Part[]): Record<string, unknown>[] {
  return parts.flatMap((part) => encodePart(part, parts));
}

/** One of the parts of an answer; none when it is not to be seen. */
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

/** The signature of an answer's text, which in a stream comes with its last, empty part. */
export function signText(parts: readonly Part[]): { thoughtSignature?: string } {
  const isThought = parts.some((part) => part.kind === "reasoning") && parts.some((part) => part.kind === "text");
  return isThought ? { thoughtSignature: sign(joinText(parts)) } : {};
}

/** The reason of a candidate's end, also said by the last chunk of a stream. */
export function encodeEnd({ end }: Answer): { finishReason?: string } {
  return end ? { finishReason: FINISH_REASONS[end.kind] } : {};
}

/** Usage after this many answer tokens, thoughts included: in a stream a running total. */
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

/** The fields that a response and every chunk of it have in common. */
export function encodeEnvelope(answer: Answer): Record<string, unknown> {
  return { modelVersion: answer.model, responseId: answer.id.slice(0, 22) };
}

/** A whole response. A candidate without parts has no content at all. */
export function encodeResponse(answer: Answer): unknown {
  const parts = encodeParts(answer.parts);
  const content = parts.length > 0 ? { content: { parts, role: "model" } } : {};
  return {
    candidates: [{ ...content, ...encodeEnd(answer), index: 0 }],
    usageMetadata: encodeUsage(answer, answer.usage.completionTokens),
    ...encodeEnvelope(answer),
  };
}
