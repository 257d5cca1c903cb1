import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import type { Capabilities, UpstreamModel } from "../../../src/core/provider.ts";

const CAPABILITIES: Capabilities = {
  sampling: true,
  temperatureWithTopP: true,
  maxTemperature: 2,
  penalties: true,
  seed: true,
  logprobs: false,
  multipleChoices: false,
  reasoning: "level",
  reasoningByDefault: true,
  reasoningCanBeDisabled: false,
  reasoningEfforts: ["low", "medium", "high"],
  reasoningBudget: [0, 0],
  preservedReasoning: true,
  tools: true,
  forcedTools: true,
  jsonSchema: true,
  prefill: true,
  midConversationSystem: false,
  imageUrls: false,
  imageOptions: false,
  embeddingDimensions: false,
  maxTokensField: "max_tokens",
  contentParts: true,
  streamUsage: true,
  cachePoints: false,
  streamAbove: Number.MAX_SAFE_INTEGER,
};

const FLASH: Omit<UpstreamModel, "capabilities"> = {
  name: "gemini-3.8-flash",
  contextWindow: 1_000_000,
  maxOutputTokens: 65_536,
  defaultMaxTokens: 8192,
  inputModalities: new Set([Modality.TEXT, Modality.IMAGE, Modality.AUDIO, Modality.VIDEO]),
  outputModalities: new Set([Modality.TEXT]),
};

/** A text model of the third generation, with what a test changes about it. */
export function flash(capabilities: Partial<Capabilities> = {}, rest: Partial<UpstreamModel> = {}): UpstreamModel {
  return { ...FLASH, ...rest, capabilities: { ...CAPABILITIES, ...capabilities } };
}

/** A model of the generation before: a thinking budget, signatures not checked. */
export function older(capabilities: Partial<Capabilities> = {}): UpstreamModel {
  const budget = { reasoning: "budget", reasoningBudget: [128, 32_768], reasoningEfforts: [] } as const;
  return flash({ ...budget, preservedReasoning: false, ...capabilities });
}

/** A model that makes pictures; its reasoning is its own affair. */
export function painter(capabilities: Partial<Capabilities> = {}): UpstreamModel {
  const outputModalities = new Set([Modality.TEXT, Modality.IMAGE]);
  const own = { reasoning: "none", imageOptions: true, tools: false, ...capabilities } as const;
  return flash(own, { name: "gemini-3-pro-image-preview", outputModalities });
}
