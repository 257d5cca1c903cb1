import type { Scenario } from "./fixtures.ts";

const CLAUDE = {
  provider: "anthropic",
  context_window: 200_000,
  modalities: { input: ["text", "image"], output: ["text"] },
};
const GEMINI = { provider: "google", context_window: 1_000_000, max_output_tokens: 65_536, default_max_tokens: 8192 };
const ADAPTIVE = {
  sampling: false,
  reasoning: "adaptive",
  reasoning_by_default: true,
  prefill: false,
  mid_conversation_system: true,
};
const IMAGE_MODEL = "gemini-3-pro-image-preview";

/** The providers and models that the fixtures were written for, all served at `url`. */
export function fixtureModels(url: string, { meta }: Scenario): { providers: object; models: object } {
  const at = { allow_private: true, api_keys: ["credential"] };
  return {
    providers: {
      anthropic: { dialect: "anthropic", base_url: url, ...at },
      google: { dialect: "gemini", base_url: url, ...at },
      local: { dialect: "openai", base_url: `${url}/v1`, ...at },
    },
    models: {
      "acme/claude-sonnet-4-5": {
        ...CLAUDE,
        upstream_model: "claude-sonnet-4-5-20250929",
        created: "2025-09-29",
        max_output_tokens: 64_000,
        capabilities: { reasoning_efforts: [] },
      },
      "acme/claude-opus-5-5": {
        ...CLAUDE,
        upstream_model: "claude-opus-5-5",
        max_output_tokens: 128_000,
        capabilities: { ...ADAPTIVE, reasoning_can_be_disabled: false, preserved_reasoning: true, forced_tools: false },
      },
      "acme/claude-opus-5": {
        ...CLAUDE,
        upstream_model: "claude-opus-5",
        max_output_tokens: 128_000,
        capabilities: ADAPTIVE,
      },
      "acme/gemini-3.8-flash": {
        ...GEMINI,
        upstream_model: "gemini-3.8-flash",
        modalities: { input: ["text", "image", "audio"], output: ["text"] },
        capabilities: { preserved_reasoning: true },
      },
      "acme/gemini-image": {
        ...GEMINI,
        // Two scenarios were written for two models of the same public name.
        upstream_model: /models\/(gemini[^:]*image[^:]*):/.exec(meta.upstream_path ?? "")?.[1] ?? IMAGE_MODEL,
        created: "2025-11-20",
        modalities: { input: ["text", "image"], output: ["text", "image"] },
        capabilities: { reasoning: "budget", tools: false, forced_tools: false, image_options: true },
      },
      "acme/llama": {
        provider: "local",
        upstream_model: "llama-x",
        context_window: 128_000,
        max_output_tokens: 16_000,
        capabilities: { reasoning: "level", reasoning_efforts: ["low", "medium", "high"] },
      },
    },
  };
}

/** What is asked where a scenario only says what came back. */
export function requestOf({ clientRequest, meta }: Scenario): object {
  if (clientRequest !== undefined) return clientRequest;
  const model = meta.upstream_path?.includes("image") === true ? "acme/gemini-image" : MODELS[meta.provider];
  return { model, messages: [{ role: "user", content: "hi" }], ...(meta.stream && { stream: true }) };
}

const MODELS = {
  anthropic: "acme/claude-sonnet-4-5",
  gemini: "acme/gemini-3.8-flash",
  "openai-compatible": "acme/llama",
  gateway: "acme/claude-sonnet-4-5",
} as const;
