import { Modality } from "../../gen/parley/v1/modality_pb.js";
import type { Config, ModelConfig, RemoteProvider } from "../config/config.ts";
import type { Model } from "../core/model.ts";
import type { Provider } from "../core/provider.ts";
import { anthropic } from "../providers/anthropic/provider.ts";
import { gemini } from "../providers/gemini/provider.ts";
import { connectUpstream, UNLIMITED } from "../providers/transport/http.ts";
import { openai } from "../providers/openai/provider.ts";
import { openaiResponses } from "../providers/openai-responses/provider.ts";
import { withCustomTools } from "../providers/wire/custom-tools.ts";
import type { ReadScheduler } from "../scheduling/read-scheduler.ts";

/** The dialects. Adding one takes a folder under `providers/`, a line here and one in the configuration. */
const DIALECTS = {
  anthropic: (options: Parameters<typeof anthropic>[0]) => withCustomTools(anthropic(options)),
  gemini: (options: Parameters<typeof gemini>[0]) => withCustomTools(gemini(options)),
  openai,
  "openai-responses": openaiResponses,
} as const;

const MODALITIES = {
  text: Modality.TEXT,
  image: Modality.IMAGE,
  audio: Modality.AUDIO,
  file: Modality.FILE,
  video: Modality.VIDEO,
  embedding: Modality.EMBEDDING,
} as const;

/** The models of one configuration, connected to their providers. */
export interface Catalogue {
  readonly models: readonly Model[];
  /** Closes the providers' connections as calls in flight end. */
  close(): Promise<void>;
}

export interface CatalogueOptions {
  /** Base URL used in place of providers without a credential. */
  readonly simulatorUrl: string | undefined;
  readonly readScheduler: ReadScheduler;
}

/** Builds the models of a configuration. */
export function buildCatalogue(config: Config, { simulatorUrl, readScheduler }: CatalogueOptions): Catalogue {
  const remote = new Map(
    config.providers.map((provider) => [
      provider.name,
      provider.simulated ? simulate(provider, simulatorUrl) : provider,
    ]),
  );
  const connected = new Map<string, Provider>();
  const connect = ({ provider: name, timeouts: { connectMs } }: ModelConfig): Provider => {
    // Connections are pooled per provider; a model with a connect limit of its own gets a pool of its own.
    const key = `${name} ${connectMs}`;
    let provider = connected.get(key);
    if (provider === undefined) {
      const { dialect, baseUrl, allowPrivate, apiKeys, headers, connections } = remote.get(name)!;
      const upstream = connectUpstream({ baseUrl, allowPrivate, connectMs, connections, readScheduler });
      connected.set(key, (provider = DIALECTS[dialect]({ upstream, apiKeys, headers })));
    }
    return provider;
  };
  return {
    models: config.models.map((model) => toModel(model, connect(model), remote.get(model.provider)!)),
    async close() {
      await Promise.all([...connected.values()].map((provider) => provider.close()));
    },
  };
}

function simulate(provider: Config["providers"][number], simulatorUrl: string | undefined): RemoteProvider {
  const { name, dialect } = provider;
  if (simulatorUrl === undefined) throw new RangeError(`provider ${name} is simulated, but no simulator runs`);
  const baseUrl = dialect === "openai" ? `${simulatorUrl}/v1` : simulatorUrl;
  return {
    name,
    dialect,
    simulated: false,
    baseUrl,
    apiKeys: ["simulator-credential"],
    allowPrivate: true,
    headers: {},
    connections: UNLIMITED,
    options: undefined,
  };
}

function toModel(model: ModelConfig, provider: Provider, { dialect, options }: RemoteProvider): Model {
  const { firstContentMs, idleMs, totalMs, settleMs } = model.timeouts;
  return {
    id: model.id,
    description: model.description,
    created: model.created,
    providerName: model.provider,
    dialect,
    stage: model.stage,
    shutdown: model.shutdown,
    price: model.price,
    timeouts: { firstContentMs, idleMs, totalMs, settleMs },
    maxTokensPerSecond: model.maxTokensPerSecond,
    options: options && new Set(options),
    provider,
    upstream: {
      name: model.upstreamModel,
      contextWindow: model.contextWindow,
      maxOutputTokens: model.maxOutputTokens,
      defaultMaxTokens: model.defaultMaxTokens,
      inputModalities: new Set(model.modalities.input.map((name) => MODALITIES[name])),
      outputModalities: new Set(model.modalities.output.map((name) => MODALITIES[name])),
      capabilities: model.capabilities,
    },
  };
}
