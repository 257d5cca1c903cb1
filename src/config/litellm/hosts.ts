import type { Dialect } from "../dialects.ts";
import type { PresetName } from "../presets.ts";

/** How deployments of one of LiteLLM's providers are reached by Parley. */
export type HostRule =
  /** An address and a key. */
  | {
      readonly kind: "address";
      /** For one without `api_base`; with it for hosts whose models have capabilities of their own. */
      readonly preset?: PresetName;
      readonly dialect?: Dialect;
      /** Variable that LiteLLM reads the key from, where the preset has another one. */
      readonly variable?: string;
      /** End of Parley's `base_url` that LiteLLM's `api_base` lacks. */
      readonly end?: string;
    }
  | { readonly kind: "azure" }
  | { readonly kind: "bedrock" }
  | { readonly kind: "vertex" };

const address = (rule: Omit<Extract<HostRule, { kind: "address" }>, "kind">): HostRule => ({
  kind: "address",
  ...rule,
});

/** A server that speaks the API of OpenAI. */
const compatible = address({ dialect: "openai" });

/** By the prefix of `litellm_params.model`. Source: "Providers" of LiteLLM's documentation, November 2026. */
const HOSTS: Readonly<Record<string, HostRule>> = {
  anthropic: address({ preset: "anthropic" }),
  azure: { kind: "azure" },
  bedrock: { kind: "bedrock" },
  cerebras: address({ preset: "cerebras" }),
  cohere: address({ preset: "cohere" }),
  cohere_chat: address({ preset: "cohere" }),
  custom_openai: compatible,
  deepseek: address({ preset: "deepseek" }),
  docker_model_runner: compatible,
  fireworks_ai: address({ preset: "fireworks" }),
  gemini: address({ preset: "gemini" }),
  groq: address({ preset: "groq" }),
  hosted_vllm: address({ preset: "vllm" }),
  huggingface: address({ preset: "huggingface", variable: "HUGGINGFACE_API_KEY" }),
  litellm_proxy: compatible,
  llamafile: compatible,
  lm_studio: address({ preset: "lmstudio" }),
  mistral: address({ preset: "mistral" }),
  nvidia_nim: address({ preset: "nvidia", variable: "NVIDIA_NIM_API_KEY" }),
  ollama: address({ preset: "ollama", end: "/v1" }),
  ollama_chat: address({ preset: "ollama", end: "/v1" }),
  openai: address({ preset: "openai" }),
  openai_like: compatible,
  openrouter: address({ preset: "openrouter" }),
  perplexity: address({ preset: "perplexity", variable: "PERPLEXITYAI_API_KEY" }),
  together_ai: address({ preset: "together", variable: "TOGETHERAI_API_KEY" }),
  vertex_ai: { kind: "vertex" },
  vertex_ai_beta: { kind: "vertex" },
  xai: address({ preset: "xai" }),
  xinference: compatible,
};

/** Providers of models that LiteLLM knows without a prefix. */
const KNOWN_NAMES: readonly (readonly [RegExp, string])[] = [
  [/^(ft:)?(gpt-|o\d|chatgpt-|text-embedding-|codex-)/, "openai"],
  [/^claude-/, "anthropic"],
  [/^gemini-/, "vertex_ai"],
  [/^command/, "cohere"],
];

/** The host of a deployment, and its model's name there. */
export interface HostedModel {
  /** LiteLLM's word for the provider; undefined for a name that it may know and Parley does not. */
  readonly prefix: string | undefined;
  /** Undefined for a provider that Parley cannot reach. */
  readonly rule: HostRule | undefined;
  readonly model: string;
}

/** Reads `litellm_params.model`. `provider`: `custom_llm_provider`, which goes before the prefix. */
export function readHost(model: string, provider: string | undefined): HostedModel {
  const [first = "", ...rest] = model.split("/");
  if (provider !== undefined)
    return { prefix: provider, rule: ruleOf(provider), model: first === provider ? rest.join("/") : model };
  if (rest.length > 0) return { prefix: first, rule: ruleOf(first), model: rest.join("/") };
  const known = KNOWN_NAMES.find(([pattern]) => pattern.test(model))?.[1];
  return { prefix: known, rule: known === undefined ? undefined : HOSTS[known], model };
}

function ruleOf(prefix: string): HostRule | undefined {
  return Object.hasOwn(HOSTS, prefix) ? HOSTS[prefix] : undefined;
}
