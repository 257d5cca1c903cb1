import type { Usage } from "../../../gen/parley/v1/usage_pb.js";
import { count, isObject, object } from "../wire/json.ts";
import { toUsage } from "../wire/response.ts";

/**
 * Reads the usage; undefined without one. Completion tokens include reasoning: servers that count reasoning separately are
 * detected by their total. A missing count is the rest of the total.
 */
export function readUsage(value: unknown): Usage | undefined {
  if (!isObject(value)) return undefined;
  const total = count(value.total_tokens);
  const prompt = count(value.prompt_tokens) ?? restOf(total, count(value.completion_tokens));
  const answered = count(value.completion_tokens) ?? restOf(total, prompt);
  if (prompt === undefined && answered === undefined) return undefined;
  const ofPrompt = object(value.prompt_tokens_details);
  const ofAnswer = object(value.completion_tokens_details);
  const reasoning = count(ofAnswer.reasoning_tokens);
  const sum = (prompt ?? 0) + (answered ?? 0);
  const apart = reasoning !== undefined && reasoning > 0 && total === sum + reasoning;
  return toUsage({
    inputTokens: prompt ?? 0,
    outputTokens: (answered ?? 0) + (apart ? reasoning : 0),
    cachedInputTokens:
      count(ofPrompt.cached_tokens) ?? count(value.prompt_cache_hit_tokens) ?? count(value.cached_tokens),
    cacheWriteInputTokens: count(ofPrompt.cache_write_tokens),
    reasoningOutputTokens: reasoning,
    audioInputTokens: count(ofPrompt.audio_tokens),
    imageInputTokens: count(ofPrompt.image_tokens),
    audioOutputTokens: count(ofAnswer.audio_tokens),
    imageOutputTokens: count(ofAnswer.image_tokens),
    acceptedPredictionTokens: count(ofAnswer.accepted_prediction_tokens),
    rejectedPredictionTokens: count(ofAnswer.rejected_prediction_tokens),
  });
}

function restOf(total: number | undefined, known: number | undefined): number | undefined {
  return total === undefined || known === undefined ? undefined : Math.max(total - known, 0);
}
