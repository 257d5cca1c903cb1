import type { Report } from "./config-error.ts";
import { camelKeys, type ModelConfig, type ProviderConfig } from "./config.ts";
import { DIALECT_DEFAULTS, WITHOUT_COMPLETIONS } from "./dialects.ts";
import { sellerAddressOf } from "./hosts.ts";
import { knownModel, type KnownModel, type PriceInput } from "./known-models.ts";
import { BUILT_IN_MODELS, BUILT_IN_PROVIDERS, type CompleteModelInput } from "./models.ts";
import { type Preset, presetAt, PRESETS } from "./presets.ts";
import { findPrice, isComplete, resolvePrice } from "./prices.ts";
import { unknownProvider } from "./providers.ts";
import { resolveHedge } from "./routes.ts";
import type { CapabilitiesInput, FileInput, ModelInput } from "./schema.ts";

/** Default of `default_max_tokens`: enough for a long answer, and with reasoning for the reasoning tokens, too. */
const DEFAULT_MAX_TOKENS = 8192;
const DEFAULT_MAX_TOKENS_REASONING = 32_000;

/** Faster than the services of the built-in models. Providers with special hardware may be faster: then configure it. */
const DEFAULT_MAX_TOKENS_PER_SECOND = 1_000;

/** The built-in models with the file's changes, then the file's own models in their order, without names with targets. */
export function resolveModels(input: FileInput, providers: readonly ProviderConfig[], report: Report): ModelConfig[] {
  const ids = new Set([...Object.keys(BUILT_IN_MODELS), ...Object.keys(input.models)]);
  const models: ModelConfig[] = [];
  for (const id of ids) {
    const entry = input.models[id] ?? {};
    if (entry.targets !== undefined) continue;
    const name = entry.provider ?? BUILT_IN_MODELS[id]?.provider;
    const provider = providers.find((candidate) => candidate.name === name);
    if (provider === undefined) {
      // A built-in model whose provider is neither configured nor simulated is left out, unless the file names it.
      if (input.models[id] === undefined) continue;
      report(["models", id, "provider"], name === undefined ? "is required" : unknownProvider(name, providers));
      continue;
    }
    const model = completeModel({ id, entry, provider, report });
    const isLeftOut =
      input.models[id] === undefined && model !== undefined && isEmbedding(model) && !hasEmbeddings(provider);
    if (model !== undefined && !isLeftOut) models.push(resolveModel({ id, model, provider, input, report }));
  }
  return models;
}

interface EntryParts {
  readonly id: string;
  readonly entry: ModelInput;
  readonly provider: ProviderConfig;
  readonly report: Report;
}

/** Merges an entry over the built-in model of the same name. Undefined (and reported) when a required setting is missing. */
function completeModel({ id, entry, provider, report }: EntryParts): CompleteModelInput | undefined {
  const known: ModelInput = { ...BUILT_IN_MODELS[id] };
  const moved = known.provider !== undefined && known.provider !== provider.name;
  // Of the built-in upstream model.
  if (entry.upstream_model !== undefined && entry.upstream_model !== known.upstream_model) {
    delete known.stage;
    delete known.shutdown;
  }
  // The built-in upstream name is valid only at its own provider, the capabilities only in its dialect.
  if (moved) delete known.upstream_model;
  if (provider.dialect !== BUILT_IN_PROVIDERS[known.provider ?? ""]) delete known.capabilities;

  const merged: ModelInput = { ...DEFAULTS, description: id, ...known, ...entry };
  const missing = REQUIRED.filter((key) => merged[key] === undefined);
  for (const key of missing) report(["models", id, key], moved ? "is required with another provider" : "is required");
  if (missing.length > 0) return undefined;
  return { ...merged, capabilities: { ...known.capabilities, ...entry.capabilities } } as CompleteModelInput;
}

const REQUIRED = ["provider", "upstream_model"] as const;

/** Assumed for a model when the file does not say otherwise. */
export const DEFAULTS: ModelInput = {
  created: "1970-01-01",
  modalities: { input: ["text"], output: ["text"] },
};

/** Assumed where neither the file nor the list of known models has them. */
const DEFAULT_CONTEXT_WINDOW = 131_072;
const DEFAULT_MAX_OUTPUT_TOKENS = 32_768;

export interface ModelParts {
  readonly id: string;
  readonly model: CompleteModelInput;
  readonly provider: ProviderConfig;
  readonly input: FileInput;
  readonly report: Report;
}

export function resolveModel({ id, model, provider, input, report }: ModelParts): ModelConfig {
  const isCompletion = !isEmbedding(model);
  const presetName = input.providers[provider.name]?.preset;
  const preset: Preset | undefined = presetName && PRESETS[presetName];
  const service: Partial<Preset> = { ...preset, ...presetAt(provider) };
  const capabilities: CapabilitiesInput = {
    ...DIALECT_DEFAULTS[provider.dialect].capabilities,
    ...preset?.capabilities,
    ...(isCompletion ? { embedding_dimensions: false } : WITHOUT_COMPLETIONS),
    ...model.capabilities,
  };
  if (!isCompletion) checkEmbedding({ id, model, provider, input, report });
  else if (model.capabilities?.embedding_dimensions === true)
    report(
      ["models", id, "capabilities", "embedding_dimensions"],
      "is only for models with modalities.output: [embedding]",
    );
  const known = knownModel(sellerOf({ id, model, provider }), model.upstream_model);
  const contextWindow = model.context_window ?? known?.contextWindow ?? DEFAULT_CONTEXT_WINDOW;
  const maxOutputTokens = isCompletion
    ? (model.max_output_tokens ?? Math.min(DEFAULT_MAX_OUTPUT_TOKENS, contextWindow))
    : 0;
  const fallback = capabilities.reasoning_by_default ? DEFAULT_MAX_TOKENS_REASONING : DEFAULT_MAX_TOKENS;
  const defaultMaxTokens = model.default_max_tokens ?? Math.min(fallback, maxOutputTokens);
  if (isCompletion && defaultMaxTokens > maxOutputTokens) {
    report(["models", id, "default_max_tokens"], "must be at most max_output_tokens");
  }
  if (capabilities.reasoning_budget[0] > capabilities.reasoning_budget[1]) {
    report(["models", id, "capabilities", "reasoning_budget"], "must be [smallest, largest]");
  }
  const listed = known?.price && isComplete(known.price, model, provider.dialect) ? known.price : undefined;
  const price = findPrice(model.price, listed, { id, report });
  return {
    id,
    provider: provider.name,
    upstreamModel: model.upstream_model,
    description: model.description,
    created: Date.parse(model.created) / 1000,
    contextWindow,
    maxOutputTokens,
    defaultMaxTokens,
    maxTokensPerSecond: model.max_tokens_per_second ?? service.maxTokensPerSecond ?? DEFAULT_MAX_TOKENS_PER_SECOND,
    billsClosedStreams: service.billsClosedStreams ?? DIALECT_DEFAULTS[provider.dialect].billsClosedStreams ?? false,
    billsDocuments: service.documentFees === "all" || (service.documentFees !== undefined && !readsFiles(model)),
    statesCost: service.statesCost ?? false,
    modalities: model.modalities,
    stage: model.stage ?? "stable",
    shutdown: model.shutdown === undefined ? undefined : Date.parse(model.shutdown) / 1000,
    sources: sourcesOf(model, known, listed),
    price: price && resolvePrice({ id, price, provider, isCompletion, report }),
    maxToolUses: {
      webSearches: model.max_tool_uses?.web_search,
      fileSearches: model.max_tool_uses?.file_search,
      codeExecutions: model.max_tool_uses?.code_execution,
    },
    timeouts: camelKeys({ ...input.timeouts, ...input.providers[provider.name]?.timeouts, ...model.timeouts }),
    capabilities: camelKeys(capabilities),
    hedge: resolveHedge(model.hedge, ["models", id, "hedge"], report),
    interchangeable: model.interchangeable ?? [],
    labels: { ...input.providers[provider.name]?.labels, ...model.labels },
  };
}

function sourcesOf(
  model: CompleteModelInput,
  known: KnownModel | undefined,
  listed: PriceInput | undefined,
): ModelConfig["sources"] {
  const assumed = known?.contextWindow === undefined ? "assumed" : "list";
  return {
    contextWindow: model.context_window === undefined ? assumed : "configured",
    maxOutputTokens: model.max_output_tokens === undefined && !isEmbedding(model) ? "assumed" : "configured",
    price: model.price?.input === undefined ? listed && "list" : "configured",
  };
}

/**
 * Address of the service that sells the model: of a built-in one that of its maker, also behind a proxy or in the simulator.
 */
function sellerOf({ id, model, provider }: Pick<ModelParts, "id" | "model" | "provider">): string {
  const isBuiltIn = BUILT_IN_MODELS[id]?.upstream_model === model.upstream_model;
  if (provider.simulated || isBuiltIn) return DIALECT_DEFAULTS[provider.dialect].baseUrl;
  return provider.host === undefined ? provider.baseUrl : sellerAddressOf(provider.host);
}

/** Whether the model makes embeddings. */
function isEmbedding({ modalities }: CompleteModelInput): boolean {
  return modalities.output.includes("embedding");
}

function readsFiles({ modalities }: CompleteModelInput): boolean {
  return modalities.input.includes("file");
}

function hasEmbeddings({ dialect }: ProviderConfig): boolean {
  return DIALECT_DEFAULTS[dialect].embeddings;
}

/** Reports what a model that makes embeddings cannot have. */
function checkEmbedding({ id, model, provider, report }: ModelParts): void {
  const { modalities, max_output_tokens, default_max_tokens, hedge, capabilities = {} } = model;
  if (!hasEmbeddings(provider))
    report(["models", id, "modalities", "output"], `the dialect ${provider.dialect} has no embeddings`);
  if (modalities.output.length > 1) report(["models", id, "modalities", "output"], "embedding must be the only entry");
  if (modalities.input.some((one) => one !== "text"))
    report(["models", id, "modalities", "input"], "must be [text] for embeddings");
  for (const [key, value] of Object.entries({ max_output_tokens, default_max_tokens }))
    if (value !== undefined)
      report(["models", id, key], "is not for models that make embeddings: they have no output tokens");
  if (hedge !== undefined) report(["models", id, "hedge"], "is not for models that make embeddings");
  for (const key of Object.keys(capabilities))
    if (key !== "embedding_dimensions")
      report(["models", id, "capabilities", key], "is not for models that make embeddings");
}
