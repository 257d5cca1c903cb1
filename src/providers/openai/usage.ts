import type { Usage } from "../../../gen/parley/v1/completion_pb.js";
import { count, isObject, object } from "../wire/json.ts";
import { toUsage } from "../wire/response.ts";

/**
 * Reads the usage; undefined without one. Completion tokens include reasoning: servers that count reasoning separately are
 * detected by their total.
 */
export function readUsage(value: unknown): Usage | undefined {
  if (!isObject(value)) return undefined;
  const prompt = count(value.prompt_tokens);
  const answered = count(value.completion_tokens);
  const total = count(value.total_tokens);
  if (prompt === undefined && answered === undefined && total === undefined) return undefined;
  const ofPrompt = object(value.prompt_tokens_details);
  const ofAnswer = object(value.completion_tokens_details);
  const reasoning = count(ofAnswer.reasoning_tokens);
  const sum = (prompt ?? 0) + (answered ?? 0);
  const apart = reasoning !== undefined && reasoning > 0 && total === sum + reasoning;
  return toUsage({
    promptTokens: prompt ?? 0,
    completionTokens: (answered ?? 0) + (apart ? reasoning : 0),
    cachedTokens: count(ofPrompt.cached_tokens) ?? count(value.prompt_cache_hit_tokens) ?? count(value.cached_tokens),
    cacheWriteTokens: count(ofPrompt.cache_write_tokens),
    reasoningTokens: reasoning,
    promptAudioTokens: count(ofPrompt.audio_tokens),
    promptImageTokens: count(ofPrompt.image_tokens),
    completionAudioTokens: count(ofAnswer.audio_tokens),
    completionImageTokens: count(ofAnswer.image_tokens),
    acceptedPredictionTokens: count(ofAnswer.accepted_prediction_tokens),
    rejectedPredictionTokens: count(ofAnswer.rejected_prediction_tokens),
  });
}
