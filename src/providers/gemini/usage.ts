import type { Usage } from "../../../gen/parley/v1/usage_pb.js";
import { array, count, object, string } from "../wire/json.ts";
import { toUsage } from "../wire/response.ts";
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
  const prompt = count(counted["promptTokenCount"]);
  const answer = count(counted["candidatesTokenCount"]);
  const thoughts = count(counted["thoughtsTokenCount"]);
  if (prompt === undefined && answer === undefined && thoughts === undefined) return undefined;
  const counts = {
    inputTokens: (prompt ?? 0) + (count(counted["toolUsePromptTokenCount"]) ?? 0),
    outputTokens: (answer ?? 0) + (thoughts ?? 0),
    cachedInputTokens: count(counted["cachedContentTokenCount"]) ?? 0,
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

function ofModality(details: unknown, modality: string): number | undefined {
  const detail = array(details).find((entry) => string(object(entry)["modality"]) === modality);
  return count(object(detail)["tokenCount"]);
}
