import type { Dialect } from "./dialects.ts";
import type { ModelInput } from "./schema.ts";

/** The providers of the built-in models. */
export const BUILT_IN_PROVIDERS: Readonly<Record<string, Dialect>> = {
  alpha: "anthropic",
  beta: "gemini",
  gamma: "openai",
};

type Required = "provider" | "upstream_model" | "description" | "created" | "modalities";

/** A model's entry as in a file, complete but for the settings that have defaults. */
export type CompleteModelInput = ModelInput & globalThis.Required<Pick<ModelInput, Required>>;

/**
 * The built-in models, under the names that clients know.
 */
export const BUILT_IN_MODELS: Readonly<Record<string, CompleteModelInput>> = {
  "alpha-opus-4.5": {
    provider: "alpha",
    upstream_model: "claude-opus-4-5-20251101",
    description: "Most capable, for complex tasks",
    created: "2025-11-24",
    context_window: 200_000,
    max_output_tokens: 64_000,
    modalities: { input: ["text", "image"], output: ["text"] },
  },
  "alpha-sonnet-4.5": {
    provider: "alpha",
    upstream_model: "claude-sonnet-4-5-20250929",
    description: "Balanced performance and speed",
    created: "2025-09-29",
    context_window: 200_000,
    max_output_tokens: 64_000,
    modalities: { input: ["text", "image"], output: ["text"] },
    // Source: `DEPRECATED_MODELS` of @anthropic-ai/sdk 1.11.
    stage: "deprecated",
    shutdown: "2026-11-30",
  },
  "alpha-haiku-4.5": {
    provider: "alpha",
    upstream_model: "claude-haiku-4-5-20251001",
    description: "Fastest, for simple tasks",
    created: "2025-10-15",
    context_window: 200_000,
    max_output_tokens: 64_000,
    modalities: { input: ["text", "image"], output: ["text"] },
  },
  "beta-3-pro-preview": {
    provider: "beta",
    upstream_model: "gemini-3-pro-preview",
    description: "Context window of 1M tokens",
    created: "2025-11-18",
    context_window: 1_000_000,
    max_output_tokens: 65_536,
    modalities: { input: ["text", "image", "audio"], output: ["text"] },
    stage: "preview",
  },
  "beta-3-flash": {
    provider: "beta",
    upstream_model: "gemini-3-flash-preview",
    description: "Ultra-fast and cost-effective",
    created: "2025-12-17",
    context_window: 1_000_000,
    max_output_tokens: 65_536,
    modalities: { input: ["text", "image", "audio"], output: ["text"] },
    capabilities: { reasoning_efforts: ["minimal", "low", "medium", "high"] },
  },
  "beta-3-pro-image-preview": {
    provider: "beta",
    upstream_model: "gemini-3-pro-image-preview",
    description: "Multimodal with native image generation",
    created: "2025-11-20",
    context_window: 65_536,
    max_output_tokens: 32_768,
    modalities: { input: ["text", "image"], output: ["text", "image"] },
    stage: "preview",
    // An image arrives in one piece, long after a text answer would have begun.
    timeouts: { first_content_ms: 300_000 },
    capabilities: {
      reasoning: "budget",
      tools: false,
      forced_tools: false,
      image_options: true,
      preserved_reasoning: true,
    },
  },
  "beta-embedding-001": {
    provider: "beta",
    upstream_model: "gemini-embedding-001",
    description: "Embeddings of up to 3,072 dimensions",
    created: "2025-07-14",
    context_window: 2_048,
    modalities: { input: ["text"], output: ["embedding"] },
  },
  "gamma-embedding-3-small": {
    provider: "gamma",
    upstream_model: "text-embedding-3-small",
    description: "Embeddings of up to 1,536 dimensions",
    created: "2024-01-25",
    context_window: 8_192,
    modalities: { input: ["text"], output: ["embedding"] },
  },
};
