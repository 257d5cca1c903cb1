import type { ProviderConfig } from "./config.ts";
import type { Dialect } from "./dialects.ts";
import { isRecord } from "./document.ts";
import type { HostKind } from "./hosts.ts";
import type { CapabilitiesInput } from "./schema.ts";

/** Settings of a host that Parley knows. */
export interface Preset {
  readonly dialect: Dialect;
  /** The cloud, for one with addresses and credentials of its own. */
  readonly host?: HostKind;
  /** Undefined when it depends on other settings. */
  readonly baseUrl?: string;
  /** Names of a cloud's servers in all its regions, for its services in other dialects. */
  readonly servers?: RegExp;
  /** Environment variable with the credential, under the name that the host's own documents use; undefined for none. */
  readonly credential?: string;
  /** Whether it is a server on this machine. */
  readonly isLocal?: boolean;
  /** Capabilities of its models that differ from those of the dialect. */
  readonly capabilities?: Partial<CapabilitiesInput>;
  /** Default of `max_tokens_per_second`, for a host with models that are faster than the usual default. */
  readonly maxTokensPerSecond?: number;
  /**
   * Whether the host generates on after the connection of a stream is closed. Source: the list of "Stream Cancellation" in OpenRouter's
   * documentation, November 2026.
   */
  readonly billsClosedStreams?: boolean;
  /** The documents that the host reads with a tool of its own, for a fee: all, or those for models that do not read documents. */
  readonly documentFees?: "all" | "of models without files";
  /** Whether the usage of its answers has what it bills for them, in US dollars. */
  readonly statesCost?: boolean;
}

const openai = (baseUrl: string, credential: string, capabilities: Preset["capabilities"] = {}): Preset => ({
  dialect: "openai",
  baseUrl,
  credential,
  capabilities,
});

const local = (port: number): Preset => ({ dialect: "openai", baseUrl: `http://127.0.0.1:${port}/v1`, isLocal: true });

/** Hosts by name. Differing capabilities were read in November 2026 in the documents that are named; others may differ too. */
export const PRESETS = {
  anthropic: { dialect: "anthropic", baseUrl: "https://api.anthropic.com", credential: "ANTHROPIC_API_KEY" },
  gemini: {
    dialect: "gemini",
    baseUrl: "https://generativelanguage.googleapis.com",
    credential: "GEMINI_API_KEY",
    billsClosedStreams: true,
  },
  openai: openai("https://api.openai.com/v1", "OPENAI_API_KEY", { max_tokens_field: "max_completion_tokens" }),
  azure: { dialect: "openai", host: "azure", capabilities: { max_tokens_field: "max_completion_tokens" } },
  // Claude's Messages API takes pictures there only by their bytes ("Anthropic Claude Messages API" of the user guide).
  bedrock: {
    dialect: "anthropic",
    host: "bedrock",
    servers: /^bedrock-.*\.(?:amazonaws\.com|api\.aws)$/,
    capabilities: { image_urls: false },
    billsClosedStreams: true,
  },
  vertex: {
    dialect: "gemini",
    host: "vertex",
    servers: /(?:^|-)aiplatform\.(?:[a-z]+\.rep\.)?googleapis\.com$/,
    billsClosedStreams: true,
  },
  // It may choose a host that generates on. It reads documents by OCR, for a fee per page ("PDF Inputs" of its documentation).
  openrouter: {
    ...openai("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    billsClosedStreams: true,
    documentFees: "of models without files",
    statesCost: true,
  },
  // console.groq.com/docs/openai: 400 for logprobs, and for any n but 1.
  groq: {
    ...openai("https://api.groq.com/openai/v1", "GROQ_API_KEY", { logprobs: false, multiple_choices: false }),
    billsClosedStreams: true,
  },
  // 422 for stream_options and other unknown fields; its name for seed is random_seed (mistralai/platform-docs-public#7,
  // avante-corp/avante.nvim#2347, posit-dev/chatlas#145).
  mistral: {
    ...openai("https://api.mistral.ai/v1", "MISTRAL_API_KEY", { stream_usage: false, seed: false }),
    billsClosedStreams: true,
  },
  deepseek: openai("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
  // A document turns on its tool attachment_search, for a fee per call ("Files" and "Pricing" of its documentation).
  xai: { ...openai("https://api.x.ai/v1", "XAI_API_KEY"), documentFees: "all", statesCost: true },
  together: openai("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
  fireworks: openai("https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
  // hexdocs.pm/req_llm/cerebras.html: 400 for penalties. Its list of models has 3,000 tokens per second.
  cerebras: {
    ...openai("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY", { penalties: false }),
    maxTokensPerSecond: 5_000,
  },
  perplexity: {
    ...openai("https://api.perplexity.ai", "PERPLEXITY_API_KEY"),
    billsClosedStreams: true,
    statesCost: true,
  },
  cohere: openai("https://api.cohere.ai/compatibility/v1", "COHERE_API_KEY"),
  nvidia: openai("https://integrate.api.nvidia.com/v1", "NVIDIA_API_KEY"),
  huggingface: { ...openai("https://router.huggingface.co/v1", "HF_TOKEN"), billsClosedStreams: true },
  // Ports are those of the servers' own documents.
  ollama: local(11_434),
  vllm: local(8_000),
  lmstudio: local(1_234),
  llamacpp: local(8_080),
  sglang: local(30_000),
} as const satisfies Readonly<Record<string, Preset>>;

/** The name of a preset. */
export type PresetName = keyof typeof PRESETS;

/** Names of all presets. */
export const PRESET_NAMES = Object.keys(PRESETS) as [PresetName, ...PresetName[]];

/**
 * The preset of the service at a provider's address, also at one of its regions. What a service bills does not depend on the provider's
 * entry naming a preset.
 */
export function presetAt(provider: ProviderConfig): Preset | undefined {
  if (provider.simulated) return undefined;
  const { host, baseUrl } = provider;
  const server = hostnameOf(baseUrl) ?? "";
  const isThere = (preset: Preset): boolean => {
    if (host !== undefined) return preset.host === host.kind;
    if (preset.baseUrl === undefined) return preset.servers?.test(server) === true;
    return `.${server}`.endsWith(`.${hostnameOf(preset.baseUrl)}`);
  };
  return Object.values<Preset>(PRESETS).find(isThere);
}

const hostnameOf = (url: string): string | undefined => URL.parse(url)?.hostname;

/** The file's value with the settings of presets below those of the providers that name one. Anything else is left for the schema. */
export function withPresets(value: unknown): unknown {
  const providers = isRecord(value) ? value["providers"] : undefined;
  if (!isRecord(value) || !isRecord(providers)) return value;
  const filled = Object.entries(providers).map(([name, entry]): [string, unknown] => [
    name,
    isRecord(entry) ? withPreset(entry) : entry,
  ]);
  return { ...value, providers: Object.fromEntries(filled) };
}

function withPreset(entry: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const name = entry["preset"];
  if (typeof name !== "string" || !Object.hasOwn(PRESETS, name)) return entry;
  const { dialect, host, baseUrl, credential, isLocal }: Preset = PRESETS[name as PresetName];
  return {
    dialect,
    ...(host !== undefined && { host }),
    ...(baseUrl !== undefined && { base_url: baseUrl }),
    ...(credential !== undefined && { api_keys: [`\${${credential}}`] }),
    ...(isLocal === true && { allow_private: true }),
    ...entry,
  };
}
