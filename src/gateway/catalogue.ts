import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { createSecureContext, getCACertificates, type SecureContext } from "node:tls";
import { Modality } from "../../gen/parley/v1/modality_pb.js";
import type { Config, ModelConfig, RemoteProvider, RouteConfig } from "../config/config.ts";
import { ConfigError, formatPath } from "../config/config-error.ts";
import { type Host, keyHeaderOf } from "../config/hosts.ts";
import { Failure } from "../core/failure.ts";
import type { Model } from "../core/model.ts";
import type { Provider } from "../core/provider.ts";
import { createRoute, type Route } from "../core/route.ts";
import { BEDROCK } from "../providers/anthropic/bedrock-site.ts";
import { anthropic } from "../providers/anthropic/provider.ts";
import { type AnthropicSite, vertexSite } from "../providers/anthropic/site.ts";
import { bedrockConverse } from "../providers/bedrock-converse/provider.ts";
import type { OpenCredential } from "./account-credentials.ts";
import { isKeyFile, toApiKey } from "../providers/credentials/api-key.ts";
import { awsCredential } from "../providers/credentials/aws.ts";
import { authorized, type Credential } from "../providers/credentials/credential.ts";
import { entraTokens } from "../providers/credentials/entra.ts";
import { googleTokens } from "../providers/credentials/google.ts";
import { type KeyPause, withKeyPool } from "../providers/credentials/key-pool.ts";
import { toOwnService } from "../providers/credentials/own-key.ts";
import { TokenCredential } from "../providers/credentials/token.ts";
import { gemini } from "../providers/gemini/provider.ts";
import { vertexSite as vertexGemini } from "../providers/gemini/site.ts";
import { connectUpstream, UNLIMITED, type Upstream } from "../providers/transport/http.ts";
import type { Egress } from "../providers/transport/dialer.ts";
import type { SocketLimit } from "../providers/transport/socket-limit.ts";
import { azureDeployments, openai } from "../providers/openai/provider.ts";
import { openaiResponses } from "../providers/openai-responses/provider.ts";
import { redactionOfChanging } from "../providers/wire/redaction.ts";
import type { Service } from "../providers/wire/service.ts";
import { withCustomTools } from "../providers/wire/custom-tools.ts";
import type { ReadScheduler } from "../scheduling/read-scheduler.ts";

/** The dialects. Adding one takes a folder under `providers/`, a line here and one in the configuration. */
const DIALECTS = {
  anthropic: (service: Service, host: Host | undefined) => withCustomTools(anthropic(service, toSite(host))),
  "bedrock-converse": (service: Service) => withCustomTools(bedrockConverse(service)),
  gemini: (service: Service, host: Host | undefined) =>
    withCustomTools(gemini(service, host?.kind === "vertex" ? vertexGemini(host) : undefined)),
  openai: (service: Service, host: Host | undefined) => {
    const version = host?.kind === "azure" ? host.apiVersion : undefined;
    return openai(withBilling(service, host), version === undefined ? undefined : azureDeployments(version));
  },
  "openai-responses": (service: Service, host: Host | undefined) => openaiResponses(withBilling(service, host)),
} as const;

/** Azure bills prompts that it refuses ("Plan and manage costs for Azure OpenAI" and "Content filtering", November 2026). */
function withBilling(service: Service, host: Host | undefined): Service {
  return host?.kind === "azure" ? { ...service, billsRefusals: true } : service;
}

function toSite(host: Host | undefined): AnthropicSite | undefined {
  if (host?.kind === "bedrock") return BEDROCK;
  return host?.kind === "vertex" ? vertexSite(host) : undefined;
}

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
  readonly routes: readonly Route[];
  /** Closes the providers' connections as calls in flight end. */
  close(): Promise<void>;
}

export interface CatalogueOptions {
  /** Base URL used in place of providers without a credential. */
  readonly simulatorUrl: string | undefined;
  readonly readScheduler: ReadScheduler;
  /** Limit of the connections to all providers, those of a replaced catalogue included. */
  readonly sockets?: SocketLimit;
  /** Called when a provider limits or refuses one of several keys. Default: not called. */
  readonly onKeyPause?: ((pause: KeyPause & { readonly provider: string }) => void) | undefined;
  /** Decrypts an account's own credential; undefined when that is impossible. Default: always impossible. */
  readonly openCredential?: OpenCredential | undefined;
}

/** Builds the models of a configuration. */
export function buildCatalogue(config: Config, { simulatorUrl, ...options }: CatalogueOptions): Catalogue {
  const remote = new Map(
    config.providers.map((provider) => [
      provider.name,
      provider.simulated ? simulate(provider, simulatorUrl) : provider,
    ]),
  );
  const connected = new Map<string, Connected>();
  const connect = ({ provider: name, timeouts: { connectMs } }: ModelConfig): Connected => {
    // Connections are pooled per provider; a model with a connect limit of its own gets a pool of its own.
    const key = `${name} ${connectMs}`;
    let provider = connected.get(key);
    if (provider === undefined)
      connected.set(key, (provider = connectWithCredentials(remote.get(name)!, { connectMs, ...options })));
    return provider;
  };
  const models = config.models.map((model) => toModel(model, connect(model), remote.get(model.provider)!));
  return {
    models,
    routes: config.routes.map((route) => toRoute(route, models)),
    async close() {
      await Promise.all([...connected.values()].map(({ provider }) => provider.close()));
    },
  };
}

/** A provider with the configured credentials, and with those of accounts. */
type Connected = Pick<Model, "provider" | "providerOf">;

type ConnectOptions = { readonly connectMs: number } & Omit<CatalogueOptions, "simulatorUrl">;

/** Connects one provider. Throws ConfigError for files that cannot be used. */
export function connectProvider(configured: RemoteProvider, options: ConnectOptions): Provider {
  return connectWithCredentials(configured, options).provider;
}

function connectWithCredentials(
  configured: RemoteProvider,
  { connectMs, readScheduler, sockets, onKeyPause, openCredential }: ConnectOptions,
): Connected {
  const { name, dialect, host, baseUrl, allowPrivate, isStored, connections, sendsTraceContext, ...rest } = configured;
  const egress = toEgress(configured);
  const address = { baseUrl, allowPrivate, isStored, sendsTraceContext };
  const upstream = connectUpstream({
    ...address,
    connectMs,
    connections,
    egress,
    readScheduler,
    ...(sockets && { sockets }),
  });
  const header = keyHeaderOf(dialect, host);
  const credential =
    configured.lack === undefined ? toCredential(configured, connectMs) : noCredential(name, configured.lack);
  const onPause = (pause: KeyPause): void => onKeyPause?.({ provider: name, ...pause });
  const provider = DIALECTS[dialect](toService(upstream, { ...rest, name, header, credential, onPause }), host);
  if (!configured.takesAccountCredentials) return { provider };
  const { headers } = rest;
  return {
    provider,
    providerOf(accountId, sealed) {
      const secret = openCredential?.(sealed.sealed, { accountId, provider: name });
      return DIALECTS[dialect](toOwnService(upstream, { provider: name, header, headers, secret }), host);
    },
  };
}

function toRoute({ targets, ...route }: RouteConfig, models: readonly Model[]): Route {
  return createRoute({
    ...route,
    targets: targets.map(({ model, weight, when }) => ({
      model: models.find(({ id }) => id === model)!,
      weight,
      when: when && {
        ...when,
        modalities: when.modalities && new Set(when.modalities.map((name) => MODALITIES[name])),
        keyTags: when.keyTags && new Set(when.keyTags),
      },
    })),
  });
}

interface ServiceParts extends Pick<RemoteProvider, "name" | "apiKeys" | "headers"> {
  /** The header with the key; in lower case. */
  readonly header: string;
  /** In place of keys. */
  readonly credential: Credential | undefined;
  readonly onPause: (pause: KeyPause) => void;
}

/** In place of a stored credential that cannot be used. Its requests fail, and are not sent. */
function noCredential(provider: string, lack: NonNullable<RemoteProvider["lack"]>): Credential {
  return {
    authorize() {
      const message = `The credential of the provider ${provider} cannot be used (${lack}). Its administrator has to set it.`;
      throw new Failure("upstream_refused_us", message, { refused: true });
    },
    secrets: () => [],
  };
}

/**
 * Makes the credential that a host takes in place of keys; undefined for providers with keys. `limitMs`: time limit for a
 * token.
 */
function toCredential({ host, baseUrl, apiKeys }: RemoteProvider, limitMs: number): Credential | undefined {
  if (apiKeys.length > 0) return undefined;
  switch (host?.kind) {
    case "azure":
      return new TokenCredential({ fetch: entraTokens(), limitMs });
    case "bedrock":
      return awsCredential({ region: host.region, baseUrl });
    case "vertex":
      return new TokenCredential({ fetch: googleTokens({ file: host.credentialFile }), limitMs });
    case undefined:
      return undefined;
  }
}

/** Adds the credential: as a header of each request, or one of several or changing keys. Throws ConfigError for a key file. */
function toService(upstream: Upstream, { name, apiKeys, headers, header, credential, onPause }: ServiceParts): Service {
  const keys = apiKeys.map((configured, index) => {
    try {
      return toApiKey(configured, header);
    } catch (error) {
      const place = formatPath(["providers", name, "api_keys", index]);
      throw new ConfigError("A file with a key cannot be read:", [`${place}: ${(error as Error).message}`]);
    }
  });
  const others = Object.values(headers);
  const redact = redactionOfChanging(() => [
    ...keys.flatMap((key) => key.secrets()),
    ...(credential?.secrets() ?? []),
    ...others,
  ]);
  if (credential !== undefined) return { upstream: authorized(upstream, credential), headers, redact };
  const [key] = apiKeys;
  if (keys.length < 2 && (key === undefined || !isKeyFile(key)))
    return { upstream, headers: { ...keys[0]?.headers(), ...headers }, redact };
  return { upstream: withKeyPool(upstream, { keys, onPause }), headers, redact };
}

/** The way to a provider. Throws ConfigError for files of `tls` that cannot be used. */
function toEgress({ name, egress: { proxy, address, tls } }: Pick<RemoteProvider, "name" | "egress">): Egress {
  return {
    proxy: proxy === undefined ? undefined : new URL(proxy),
    address,
    secureContext: toSecureContext(name, tls),
  };
}

function toSecureContext(name: string, tls: RemoteProvider["egress"]["tls"]): SecureContext | undefined {
  const { caFile, certFile, keyFile } = tls;
  if ((caFile ?? certFile) === undefined) return undefined;
  try {
    return createSecureContext({
      ...(caFile !== undefined && { ca: [...getCACertificates("default"), ...readCertificates(caFile)] }),
      ...(certFile !== undefined && { cert: readFileSync(certFile), key: readFileSync(keyFile!) }),
    });
  } catch (error) {
    const place = formatPath(["providers", name, "tls"]);
    throw new ConfigError("A certificate cannot be used:", [`${place}: ${(error as Error).message}`]);
  }
}

/** The certificates of a PEM file. Throws for a file without any, and for one that is not valid: Node would ignore both. */
function readCertificates(file: string): string[] {
  const found = readFileSync(file, "utf8").match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  if (found.length === 0) throw new Error(`${file} has no certificate in PEM`);
  return found.map((certificate) => new X509Certificate(certificate).toString());
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
    takesAccountCredentials: false,
    allowPrivate: true,
    sendsTraceContext: false,
    headers: {},
    connections: UNLIMITED,
    checkedMs: undefined,
    options: undefined,
    egress: { proxy: undefined, address: undefined, tls: {} },
  };
}

function toModel(model: ModelConfig, connected: Connected, { dialect, options }: RemoteProvider): Model {
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
    maxToolUses: model.maxToolUses,
    labels: model.labels,
    timeouts: { firstContentMs, idleMs, totalMs, settleMs },
    isWindowAssumed: model.sources.contextWindow === "assumed",
    maxTokensPerSecond: model.maxTokensPerSecond,
    billsClosedStreams: model.billsClosedStreams,
    billsDocuments: model.billsDocuments,
    statesCost: model.statesCost,
    hedge: model.hedge,
    interchangeable: model.interchangeable,
    options: options && new Set(options),
    ...connected,
    upstream: {
      name: model.upstreamModel,
      contextWindow: model.contextWindow,
      maxOutputTokens: model.maxOutputTokens,
      defaultMaxTokens: model.defaultMaxTokens,
      inputModalities: new Set(model.modalities.input.map((name) => MODALITIES[name])),
      outputModalities: new Set(model.modalities.output.map((name) => MODALITIES[name])),
      pricesPictures: model.price !== undefined && model.price.imageOutput > model.price.output,
      capabilities: model.capabilities,
    },
  };
}
