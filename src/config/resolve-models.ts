import { camelKeys } from "./camel-keys.ts";
import type { ModelConfig, Price, ProviderConfig } from "./config.ts";
import type { Report } from "./config-error.ts";
import { DIALECT_DEFAULTS } from "./dialects.ts";
import { BUILT_IN_MODELS, BUILT_IN_PROVIDERS, type CompleteModelInput } from "./models.ts";
import { nearest } from "../encoding/nearest.ts";
import type { CapabilitiesInput, FileInput, ModelInput } from "./schema.ts";

const MICRO_USD = 1_000_000;

/** When a request names no limit: enough for a long answer, and for reasoning that counts as output. */
const DEFAULT_MAX_TOKENS = 8192;
const DEFAULT_MAX_TOKENS_REASONING = 32_000;

/** Faster than the services of the built-in models. Providers with hardware of their own may be faster still. */
const DEFAULT_MAX_TOKENS_PER_SECOND = 1_000;

/** The built-in models with what the file changes, then the file's own, in its order. */
export function resolveModels(input: FileInput, providers: readonly ProviderConfig[], report: Report): ModelConfig[] {
  const ids = new Set([...Object.keys(BUILT_IN_MODELS), ...Object.keys(input.models)]);
  const models: ModelConfig[] = [];
  for (const id of ids) {
    const entry = input.models[id] ?? {};
    const name = entry.provider ?? BUILT_IN_MODELS[id]?.provider;
    const provider = providers.find((candidate) => candidate.name === name);
    if (provider === undefined) {
      // A built-in model of a provider that is neither configured nor simulated is not there; nobody asked for it.
      if (input.models[id] === undefined) continue;
      report(["models", id, "provider"], name === undefined ? "is required" : unknownProvider(name, providers));
      continue;
    }
    const model = completeModel({ id, entry, provider, report });
    if (model !== undefined) models.push(resolveModel({ id, model, provider, input, report }));
  }
  return models;
}

interface EntryParts {
  readonly id: string;
  readonly entry: ModelInput;
  readonly provider: ProviderConfig;
  readonly report: Report;
}

/** The entry over the built-in model of the same name. Undefined (and reported) when something has no default. */
function completeModel({ id, entry, provider, report }: EntryParts): CompleteModelInput | undefined {
  const known: ModelInput = { ...BUILT_IN_MODELS[id] };
  const moved = known.provider !== undefined && known.provider !== provider.name;
  // What the built-in model is called upstream is only known at its own provider, what it can do only in its dialect.
  if (moved) delete known.upstream_model;
  if (provider.dialect !== BUILT_IN_PROVIDERS[known.provider ?? ""]) delete known.capabilities;

  const merged: ModelInput = { ...DEFAULTS, description: id, ...known, ...entry };
  const missing = REQUIRED.filter((key) => merged[key] === undefined);
  for (const key of missing) report(["models", id, key], moved ? "is required with another provider" : "is required");
  if (missing.length > 0) return undefined;
  return { ...merged, capabilities: { ...known.capabilities, ...entry.capabilities } } as CompleteModelInput;
}

const REQUIRED = ["provider", "upstream_model"] as const;

/** What is taken for granted of a model that the file says nothing else about. */
const DEFAULTS: ModelInput = {
  created: "1970-01-01",
  context_window: 131_072,
  max_output_tokens: 32_768,
  modalities: { input: ["text"], output: ["text"] },
};

interface ModelParts {
  readonly id: string;
  readonly model: CompleteModelInput;
  readonly provider: ProviderConfig;
  readonly input: FileInput;
  readonly report: Report;
}

function resolveModel({ id, model, provider, input, report }: ModelParts): ModelConfig {
  const capabilities: CapabilitiesInput = {
    ...DIALECT_DEFAULTS[provider.dialect].capabilities,
    ...model.capabilities,
  };
  const fallback = capabilities.reasoning_by_default ? DEFAULT_MAX_TOKENS_REASONING : DEFAULT_MAX_TOKENS;
  const defaultMaxTokens = model.default_max_tokens ?? Math.min(fallback, model.max_output_tokens);
  if (defaultMaxTokens > model.max_output_tokens) {
    report(["models", id, "default_max_tokens"], "must be at most max_output_tokens");
  }
  if (capabilities.reasoning_budget[0] > capabilities.reasoning_budget[1]) {
    report(["models", id, "capabilities", "reasoning_budget"], "must be [smallest, largest]");
  }
  return {
    id,
    provider: provider.name,
    upstreamModel: model.upstream_model,
    description: model.description,
    created: Date.parse(model.created) / 1000,
    contextWindow: model.context_window,
    maxOutputTokens: model.max_output_tokens,
    defaultMaxTokens,
    maxTokensPerSecond: model.max_tokens_per_second ?? DEFAULT_MAX_TOKENS_PER_SECOND,
    modalities: model.modalities,
    preview: model.preview ?? false,
    price: model.price && resolvePrice(model.price, DIALECT_DEFAULTS[provider.dialect].cacheWrite),
    timeouts: camelKeys({ ...input.timeouts, ...input.providers[provider.name]?.timeouts, ...model.timeouts }),
    capabilities: camelKeys(capabilities),
  };
}

function resolvePrice(
  price: NonNullable<ModelInput["price"]>,
  [minutes, hour]: readonly [minutes: number, hour: number],
): Price {
  const toMicroUsd = (usd: number): number => Math.round(usd * MICRO_USD);
  return {
    input: toMicroUsd(price.input),
    output: toMicroUsd(price.output),
    cachedInput: toMicroUsd(price.cached_input ?? price.input),
    cacheWrite: toMicroUsd(price.cache_write ?? minutes * price.input),
    cacheWriteHour: toMicroUsd(price.cache_write_1h ?? Math.max(price.cache_write ?? 0, hour * price.input)),
    audioInput: toMicroUsd(price.audio_input ?? price.input),
    image: toMicroUsd(price.image ?? price.output),
    audioOutput: toMicroUsd(price.audio_output ?? price.output),
  };
}

function unknownProvider(name: string, providers: readonly ProviderConfig[]): string {
  const names = providers.map((provider) => provider.name);
  const meant = nearest(name, names);
  return `there is no such provider; ${meant === undefined ? `there are: ${names.join(", ")}` : `did you mean ${meant}?`}`;
}
