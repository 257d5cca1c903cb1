import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import type { Capabilities, UpstreamModel } from "../../../src/core/provider.ts";

const BUDGET: Capabilities = {
  sampling: true,
  temperatureWithTopP: false,
  maxTemperature: 1,
  penalties: false,
  seed: false,
  logprobs: false,
  multipleChoices: false,
  reasoning: "budget",
  reasoningByDefault: false,
  reasoningCanBeDisabled: true,
  reasoningEfforts: [],
  reasoningBudget: [1024, 63_999],
  preservedReasoning: false,
  tools: true,
  forcedTools: true,
  jsonSchema: true,
  prefill: true,
  midConversationSystem: false,
  imageUrls: true,
  imageOptions: false,
  embeddingDimensions: false,
  maxTokensField: "max_tokens",
  contentParts: true,
  streamUsage: false,
  cachePoints: false,
  streamAbove: 21_333,
};

/** A model that reasons within a budget and takes sampling parameters, with `changes`. */
export function budgetModel(changes: Partial<Capabilities> = {}): UpstreamModel {
  return {
    name: "claude-sonnet-4-5-20250929",
    contextWindow: 200_000,
    maxOutputTokens: 64_000,
    defaultMaxTokens: 8192,
    inputModalities: new Set([Modality.TEXT, Modality.IMAGE]),
    outputModalities: new Set([Modality.TEXT]),
    capabilities: { ...BUDGET, ...changes },
  };
}

/** A model that always adapts its reasoning to an effort and binds it to the conversation, with `changes`. */
export function adaptiveModel(changes: Partial<Capabilities> = {}): UpstreamModel {
  const adaptive = budgetModel({
    sampling: false,
    reasoning: "adaptive",
    reasoningByDefault: true,
    reasoningCanBeDisabled: false,
    reasoningEfforts: ["low", "medium", "high", "xhigh", "max"],
    preservedReasoning: true,
    forcedTools: false,
    prefill: false,
    midConversationSystem: true,
    ...changes,
  });
  return { ...adaptive, name: "claude-opus-5-5", maxOutputTokens: 128_000, defaultMaxTokens: 32_000 };
}

/** One that can also stop reasoning, be made to call tools, and does not bind its reasoning. */
export function switchableModel(changes: Partial<Capabilities> = {}): UpstreamModel {
  const switchable = { reasoningCanBeDisabled: true, preservedReasoning: false, forcedTools: true, ...changes };
  return { ...adaptiveModel(switchable), name: "claude-opus-5" };
}
