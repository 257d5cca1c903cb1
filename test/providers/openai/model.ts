import { Modality } from "../../../gen/parley/v1/completion_pb.js";
import type { Capabilities, UpstreamModel } from "../../../src/core/provider.ts";

/** A model that can do everything, but for what a test rules out. */
export function modelThat(
  can: Partial<Capabilities> = {},
  facts: Partial<Omit<UpstreamModel, "capabilities">> = {},
): UpstreamModel {
  return {
    name: "llama-x",
    contextWindow: 128_000,
    maxOutputTokens: 16_000,
    defaultMaxTokens: 4_096,
    inputModalities: new Set([Modality.TEXT, Modality.IMAGE, Modality.AUDIO]),
    outputModalities: new Set([Modality.TEXT, Modality.IMAGE, Modality.AUDIO]),
    ...facts,
    capabilities: {
      sampling: true,
      temperatureWithTopP: true,
      maxTemperature: 2,
      penalties: true,
      seed: true,
      logprobs: true,
      multipleChoices: true,
      reasoning: "level",
      reasoningByDefault: false,
      reasoningCanBeDisabled: true,
      reasoningEfforts: ["low", "medium", "high"],
      reasoningBudget: [0, 0],
      preservedReasoning: false,
      tools: true,
      forcedTools: true,
      jsonSchema: true,
      prefill: true,
      midConversationSystem: true,
      imageUrls: true,
      imageOptions: true,
      maxTokensField: "max_tokens",
      contentParts: true,
      streamUsage: true,
      streamAbove: 1_000_000,
      ...can,
    },
  };
}
