import type { Usage } from "../../../gen/parley/v1/usage_pb.js";
import { array, object, string, usageCount } from "../wire/json.ts";
import { toUsage } from "../wire/token-usage.ts";
import { unknownUnits } from "../wire/unknown-units.ts";

const KNOWN: ReadonlySet<string> = new Set([
  "promptTokenCount",
  "candidatesTokenCount",
  "totalTokenCount",
  "thoughtsTokenCount",
  "toolUsePromptTokenCount",
  "cachedContentTokenCount",
  "promptTokensDetails",
  "candidatesTokensDetails",
  "cacheTokensDetails",
  "thoughtsTokensDetails",
  "toolUsePromptTokensDetails",
]);

/**
 * Reads the provider's token counts; undefined without any. The provider counts thinking apart from the answer, and the
 * input of its own tools apart from the prompt; our counts include both.
 */
export function readUsage(metadata: unknown): Usage | undefined {
  const counted = object(metadata);
  const prompt = usageCount(counted["promptTokenCount"]);
  const answer = usageCount(counted["candidatesTokenCount"]);
  const thoughts = usageCount(counted["thoughtsTokenCount"]);
  if (prompt === undefined && answer === undefined && thoughts === undefined) return undefined;
  const counts = {
    inputTokens: (prompt ?? 0) + (usageCount(counted["toolUsePromptTokenCount"]) ?? 0),
    outputTokens: (answer ?? 0) + (thoughts ?? 0),
    cachedInputTokens: usageCount(counted["cachedContentTokenCount"]) ?? 0,
    reasoningOutputTokens: thoughts ?? 0,
    audioInputTokens: ofModality(counted["promptTokensDetails"], "AUDIO"),
    imageInputTokens: ofModality(counted["promptTokensDetails"], "IMAGE"),
    cachedAudioInputTokens: ofModality(counted["cacheTokensDetails"], "AUDIO"),
    cachedImageInputTokens: ofModality(counted["cacheTokensDetails"], "IMAGE"),
    audioOutputTokens: ofModality(counted["candidatesTokensDetails"], "AUDIO"),
    imageOutputTokens: ofModality(counted["candidatesTokensDetails"], "IMAGE"),
  };
  return toUsage(counts, unknownUnits(counted, KNOWN));
}

/** The tokens of all entries of a modality; undefined without one. */
function ofModality(details: unknown, modality: string): number | undefined {
  return array(details)
    .map(object)
    .filter((detail) => string(detail["modality"]) === modality)
    .reduce<number | undefined>((sum, { tokenCount }) => (sum ?? 0) + (usageCount(tokenCount) ?? 0), undefined);
}
