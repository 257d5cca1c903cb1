import type { CapabilitiesInput } from "./schema.ts";

/** The wire formats that Parley speaks to providers. */
export const DIALECTS = ["anthropic", "bedrock-converse", "gemini", "openai", "openai-responses"] as const;

export type Dialect = (typeof DIALECTS)[number];

/** Provider options that requests may use; has the values of core's list of the same name. */
export const PROVIDER_OPTIONS = [
  "service_tier",
  "web_search",
  "store",
  "prompt_cache_retention",
  "provider_tools",
  "other_fields",
] as const;

export type ProviderOption = (typeof PROVIDER_OPTIONS)[number];

interface DialectDefaults {
  /** Default base URL of a provider of this dialect. */
  readonly baseUrl: string;
  /** Whether the service refuses every request without a credential. */
  readonly needsCredential: boolean;
  /** The header that carries the credential; in lower case. */
  readonly credentialHeader: string;
  /** Whether it has embeddings. */
  readonly embeddings: boolean;
  /** Price of writing to the prompt cache, as multiples of the input price: for minutes, and for an hour. */
  readonly cacheWrite: readonly [minutes: number, hour: number];
  /** Whether its service generates on after the connection of a stream is closed, as `Preset.billsClosedStreams`. Default: it stops. */
  readonly billsClosedStreams?: boolean;
  /** Capabilities that its current models share; a model's entry states only differences. */
  readonly capabilities: CapabilitiesInput;
}

/**
 * Default of `stream_above`. Requests with a higher `max_tokens` are fetched as a stream, where a long answer in progress
 * can be told from a dead connection; a whole answer may take only `first_content_ms` and `idle_ms` together, three minutes
 * by default. Ordinary requests stay below: a whole answer costs a fraction of a stream.
 */
const STREAM_ABOVE = 32_768;

/** Capabilities of most current models. */
const USUAL = {
  sampling: true,
  temperature_with_top_p: true,
  max_temperature: 2,
  penalties: false,
  seed: false,
  logprobs: false,
  multiple_choices: false,
  reasoning: "none",
  reasoning_by_default: false,
  reasoning_can_be_disabled: true,
  reasoning_efforts: ["low", "medium", "high"],
  reasoning_budget: [1024, 64_000],
  preserved_reasoning: false,
  tools: true,
  forced_tools: true,
  json_schema: true,
  prefill: false,
  mid_conversation_system: false,
  image_urls: true,
  image_options: false,
  embedding_dimensions: false,
  max_tokens_field: "max_tokens",
  content_parts: true,
  stream_usage: true,
  cache_points: false,
  stream_above: STREAM_ABOVE,
} as const satisfies CapabilitiesInput;

export const DIALECT_DEFAULTS: Readonly<Record<Dialect, DialectDefaults>> = {
  anthropic: {
    baseUrl: "https://api.anthropic.com",
    needsCredential: true,
    credentialHeader: "x-api-key",
    embeddings: false,
    cacheWrite: [1.25, 2],
    capabilities: {
      ...USUAL,
      temperature_with_top_p: false,
      max_temperature: 1,
      reasoning: "budget",
      reasoning_efforts: ["low", "medium", "high", "xhigh", "max"],
      prefill: true,
      // Anthropic's own client refuses to wait for a whole answer that may be longer.
      stream_above: 21_333,
    },
  },
  // Bedrock serves models of many makers: capabilities that nearly all of them have.
  "bedrock-converse": {
    baseUrl: "https://bedrock-runtime.us-east-1.amazonaws.com",
    needsCredential: true,
    credentialHeader: "authorization",
    embeddings: false,
    cacheWrite: [1, 1],
    billsClosedStreams: true,
    capabilities: {
      ...USUAL,
      max_temperature: 1,
      json_schema: false,
      image_urls: false,
    },
  },
  gemini: {
    baseUrl: "https://generativelanguage.googleapis.com",
    needsCredential: true,
    credentialHeader: "x-goog-api-key",
    embeddings: true,
    cacheWrite: [1, 1],
    billsClosedStreams: true,
    capabilities: {
      ...USUAL,
      penalties: true,
      seed: true,
      reasoning: "level",
      reasoning_by_default: true,
      reasoning_can_be_disabled: false,
      reasoning_budget: [128, 32_768],
      image_urls: false,
      embedding_dimensions: true,
    },
  },
  openai: {
    baseUrl: "https://api.openai.com/v1",
    needsCredential: false,
    credentialHeader: "authorization",
    embeddings: true,
    cacheWrite: [1, 1],
    capabilities: {
      ...USUAL,
      penalties: true,
      seed: true,
      logprobs: true,
      multiple_choices: true,
      reasoning_efforts: [],
      reasoning_budget: [0, 0],
      mid_conversation_system: true,
      embedding_dimensions: true,
    },
  },
  "openai-responses": {
    baseUrl: "https://api.openai.com/v1",
    needsCredential: false,
    credentialHeader: "authorization",
    embeddings: false,
    cacheWrite: [1, 1],
    capabilities: {
      ...USUAL,
      logprobs: true,
      reasoning: "level",
      reasoning_by_default: true,
      reasoning_can_be_disabled: false,
      reasoning_efforts: [],
      reasoning_budget: [0, 0],
      mid_conversation_system: true,
    },
  },
};

/** Capabilities of a model that makes embeddings, beside `embedding_dimensions`: none. */
export const WITHOUT_COMPLETIONS = {
  sampling: false,
  temperature_with_top_p: false,
  penalties: false,
  seed: false,
  logprobs: false,
  multiple_choices: false,
  reasoning: "none",
  reasoning_by_default: false,
  reasoning_can_be_disabled: false,
  reasoning_efforts: [],
  preserved_reasoning: false,
  tools: false,
  forced_tools: false,
  json_schema: false,
  prefill: false,
  mid_conversation_system: false,
  image_urls: false,
  image_options: false,
} as const satisfies Partial<CapabilitiesInput>;
