import { countTokens, type Answer, type Part } from "../answer.ts";

const FINISH_REASONS = { done: "STOP", calls: "STOP", stop: "STOP", length: "MAX_TOKENS" } as const;

/** Marks a part as this simulator's own; what real signatures hold is nobody's business. */
function sign(text: string): string {
  return Buffer.from(`simulated ${text}`).toString("base64");
}

/** The parts of an answer. Only the first of parallel calls carries a signature; every picture does. */
export function encodeParts(parts: readonly Part[]): Record<string, unknown>[] {
  const firstCall = parts.find((part) => part.kind === "call");
  return parts.map((part) => {
    switch (part.kind) {
      case "text":
        return { text: part.tokens.join("") };
      case "image": {
        const inlineData = { mimeType: part.mediaType, data: part.bytes.toString("base64") };
        return { inlineData, thoughtSignature: sign(`picture of ${part.bytes.length} bytes`) };
      }
      case "call":
      default: {
        const functionCall = { id: part.id, name: part.name, args: part.input };
        return { functionCall, ...(part === firstCall ? { thoughtSignature: sign(part.id) } : {}) };
      }
    }
  });
}

/** The reason of a candidate's end, also said by the last chunk of a stream. */
export function encodeEnd({ end }: Answer): { finishReason?: string } {
  return end ? { finishReason: FINISH_REASONS[end.kind] } : {};
}

/** Usage when so many tokens of the answer are out: in a stream it is a running total. */
export function encodeUsage({ usage, parts }: Answer, candidatesTokenCount: number): Record<string, unknown> {
  const promptTokensDetails = [
    { modality: "TEXT", tokenCount: usage.promptTextTokens },
    ...(usage.promptImageTokens > 0 ? [{ modality: "IMAGE", tokenCount: usage.promptImageTokens }] : []),
  ];
  const imageTokens = parts.reduce((sum, part) => sum + (part.kind === "image" ? countTokens(part) : 0), 0);
  const isWhole = candidatesTokenCount === usage.completionTokens;
  return {
    promptTokenCount: usage.promptTokens,
    candidatesTokenCount,
    totalTokenCount: usage.promptTokens + candidatesTokenCount,
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
