import type { Usage } from "../../../gen/parley/v1/usage_pb.js";
import type { CostedUsage } from "../../core/provider.ts";
import { isObject, object, restOf, usageCount } from "../wire/json.ts";
import { toUsage } from "../wire/token-usage.ts";
import { withStatedCost } from "../wire/stated-cost.ts";
import { COSTS, unknownUnits } from "../wire/unknown-units.ts";

/** Counts that are read, sums and repetitions of others, durations of Groq and costs. */
const KNOWN: ReadonlySet<string> = new Set([
  "total_tokens",
  "prompt_tokens",
  "completion_tokens",
  "cached_tokens",
  "prompt_cache_hit_tokens",
  "prompt_cache_miss_tokens",
  "reasoning_tokens",
  "input_tokens",
  "output_tokens",
  "prompt_tokens_details.cached_tokens",
  "prompt_tokens_details.cache_write_tokens",
  "prompt_tokens_details.audio_tokens",
  "prompt_tokens_details.image_tokens",
  "prompt_tokens_details.text_tokens",
  "completion_tokens_details.reasoning_tokens",
  "completion_tokens_details.audio_tokens",
  "completion_tokens_details.image_tokens",
  "completion_tokens_details.text_tokens",
  "completion_tokens_details.accepted_prediction_tokens",
  "completion_tokens_details.rejected_prediction_tokens",
  // Mistral: one of its own, and the same as others.
  "request_count",
  "num_cached_tokens",
  "prompt_token_details",
  "prompt_tokens_details.messages",
  "queue_time",
  "prompt_time",
  "completion_time",
  "total_time",
  "num_search_queries",
  "server_tool_use.web_search_requests",
  ...COSTS,
]);

/**
 * Reads the usage; undefined without one. A missing count is the rest of the total. Completion tokens include reasoning: where a server
 * counts it apart, or only in the total as Google's endpoint for OpenAI's clients, they are the rest of the total. Prompt tokens include
 * those of caches, which relays in front of Claude count apart.
 */
export function readUsage(value: unknown): Usage | undefined {
  if (!isObject(value)) return undefined;
  const total = usageCount(value.total_tokens);
  const prompt = usageCount(value.prompt_tokens) ?? restOf(total, usageCount(value.completion_tokens));
  const answered = usageCount(value.completion_tokens) ?? restOf(total, prompt);
  if (prompt === undefined && answered === undefined) return undefined;
  const ofPrompt = object(value.prompt_tokens_details);
  const ofAnswer = object(value.completion_tokens_details);
  const reasoning = usageCount(ofAnswer.reasoning_tokens);
  const cached =
    usageCount(ofPrompt.cached_tokens) ??
    usageCount(value.prompt_cache_hit_tokens) ??
    usageCount(value.cached_tokens) ??
    usageCount(value.num_cached_tokens);
  const written = usageCount(ofPrompt.cache_write_tokens);
  const ofCaches = (cached ?? 0) + (written ?? 0);
  const isBeyond = Math.max(cached ?? 0, written ?? 0) > (prompt ?? 0);
  const isApart = isBeyond || (ofCaches > 0 && ofCaches === restOf(total, (prompt ?? 0) + (answered ?? 0)));
  const inputTokens = (prompt ?? 0) + (isApart ? ofCaches : 0);
  const counts = {
    inputTokens,
    outputTokens: Math.max(answered ?? 0, restOf(total, inputTokens) ?? 0, reasoning ?? 0),
    cachedInputTokens: cached,
    cacheWriteInputTokens: written,
    reasoningOutputTokens: reasoning,
    audioInputTokens: usageCount(ofPrompt.audio_tokens),
    imageInputTokens: usageCount(ofPrompt.image_tokens),
    audioOutputTokens: usageCount(ofAnswer.audio_tokens),
    imageOutputTokens: usageCount(ofAnswer.image_tokens),
    acceptedPredictionTokens: usageCount(ofAnswer.accepted_prediction_tokens),
    rejectedPredictionTokens: usageCount(ofAnswer.rejected_prediction_tokens),
    // Perplexity ("Chat Completions" of its API reference) and OpenRouter ("Web Search", both November 2026).
    webSearches: usageCount(value.num_search_queries) ?? usageCount(object(value.server_tool_use).web_search_requests),
  };
  return withStatedCost(toUsage(counts, unknownUnits(value, KNOWN)), value);
}

/**
 * Usage of an answer whose choices each have one: that of the choice with the largest prompt, which is the same for all, with the answer
 * tokens of all choices. Undefined without any.
 */
export function addChoiceUsages(usages: readonly CostedUsage[]): CostedUsage | undefined {
  const [largest] = usages.toSorted((one, other) => other.inputTokens - one.inputTokens);
  if (largest === undefined || usages.length === 1) return largest;
  const sumOf = (name: AnswerCount): number => usages.reduce((sum, usage) => sum + (usage[name] ?? 0), 0);
  const counts = ANSWER_COUNTS.filter((name) => usages.some((usage) => usage[name] !== undefined));
  const sums = Object.fromEntries(counts.map((name) => [name, sumOf(name)]));
  const usage: CostedUsage = toUsage({ ...largest, ...sums }, largest.unknownUnits);
  const statedMicroUsd = usages.reduce((sum, { statedMicroUsd: stated = 0 }) => sum + stated, 0);
  return statedMicroUsd > 0 ? { ...usage, statedMicroUsd } : usage;
}

const ANSWER_COUNTS = [
  "outputTokens",
  "reasoningOutputTokens",
  "audioOutputTokens",
  "imageOutputTokens",
  "acceptedPredictionTokens",
  "rejectedPredictionTokens",
] as const satisfies readonly (keyof Usage)[];

type AnswerCount = (typeof ANSWER_COUNTS)[number];
