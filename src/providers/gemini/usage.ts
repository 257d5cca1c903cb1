import { create } from "@bufbuild/protobuf";
import { type Usage, UsageSchema } from "../../../gen/parley/v1/completion_pb.js";
import { array, count, object, string } from "../lenient.ts";

/**
 * What the provider counted; undefined when it counted nothing. Thinking comes on top of its count of the answer, and
 * what its own tools put into the prompt on top of its count of the prompt; ours include both.
 */
export function toUsage(metadata: unknown): Usage | undefined {
  const counted = object(metadata);
  const prompt = count(counted["promptTokenCount"]);
  const answer = count(counted["candidatesTokenCount"]);
  const thoughts = count(counted["thoughtsTokenCount"]);
  if (prompt === undefined && answer === undefined && thoughts === undefined) return undefined;
  const promptTokens = (prompt ?? 0) + (count(counted["toolUsePromptTokenCount"]) ?? 0);
  const completionTokens = (answer ?? 0) + (thoughts ?? 0);
  const promptAudioTokens = ofModality(counted["promptTokensDetails"], "AUDIO");
  const promptImageTokens = ofModality(counted["promptTokensDetails"], "IMAGE");
  const completionAudioTokens = ofModality(counted["candidatesTokensDetails"], "AUDIO");
  const completionImageTokens = ofModality(counted["candidatesTokensDetails"], "IMAGE");
  return create(UsageSchema, {
    promptTokens,
    completionTokens,
    totalTokens: promptTokens + completionTokens,
    cachedTokens: count(counted["cachedContentTokenCount"]) ?? 0,
    reasoningTokens: thoughts ?? 0,
    ...(promptAudioTokens !== undefined && { promptAudioTokens }),
    ...(promptImageTokens !== undefined && { promptImageTokens }),
    ...(completionAudioTokens !== undefined && { completionAudioTokens }),
    ...(completionImageTokens !== undefined && { completionImageTokens }),
  });
}

function ofModality(details: unknown, modality: string): number | undefined {
  const detail = array(details).find((entry) => string(object(entry)["modality"]) === modality);
  return count(object(detail)["tokenCount"]);
}
