import { resolve as resolvePath } from "node:path";
import { nearest } from "../encoding/nearest.ts";
import { isLoopback, isMetadata, parseListenAddress, privateReason } from "./addresses.ts";
import type { ConfigPath, Report } from "./config-error.ts";
import {
  camelKeys,
  type Config,
  type ImportConfig,
  type ListenAddress,
  type ListenerTls,
  type ModelConfig,
  type ProviderConfig,
  type RemoteProvider,
  type TokenIssuerConfig,
} from "./config.ts";
import { DIALECT_DEFAULTS, DIALECTS, WITHOUT_COMPLETIONS } from "./dialects.ts";
import { KEY_SETTINGS, type KeySetting, type KeySource, type ReadKeys } from "./encryption-keys.ts";
import { addressOf, keyHeaderOf, resolveHost, sellerAddressOf } from "./hosts.ts";
import { type ModelLists, type OfferedModel, resolveImports } from "./imports.ts";
import { knownModel, type KnownModel, type PriceInput } from "./known-models.ts";
import { BUILT_IN_MODELS, BUILT_IN_PROVIDERS, type CompleteModelInput } from "./models.ts";
import { type Preset, PRESETS } from "./presets.ts";
import { findPrice, isComplete, resolvePrice } from "./prices.ts";
import type { Environment } from "./environment.ts";
import { isWithoutProxy, proxyVariable } from "./proxies.ts";
import { resolveRedis } from "./redis.ts";
import { checkInterchangeable } from "./interchangeable.ts";
import { resolveHedge, resolveRoutes } from "./routes.ts";
import { KEY_FILE, MODEL_ID, NO_PROXY, sampleProblem } from "./scalars.ts";
import {
  type CapabilitiesInput,
  type ClientTlsInput,
  type FileInput,
  type IssuerInput,
  MAX_TOKENS,
  type ModelInput,
  type ProviderInput,
} from "./schema.ts";
import type { StoredCredential } from "./stored.ts";

const LISTENERS = ["http", "grpc", "operations"] as const;
const MIB = 1024 * 1024;
const MINUTE_MS = 60 * 1000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const MICRO_USD = 1_000_000;

const SAME_KEY =
  'database.url, because all replicas need the same key; write "${NAME}" with the output of "openssl rand -base64 32"';

/** Facts of the file that are not settings. */
export type FileFacts = Pick<Config, "file" | "secretsInFile"> & {
  readonly env: Environment;
  readonly traceExport: Config["tracing"]["export"];
  readonly metricExport: Config["metrics"]["export"];
  readonly keys: ReadKeys;
  /** Entries of `models` that import. */
  readonly patterns: readonly string[];
  /** Known lists by the names of providers. */
  readonly lists: ModelLists;
  /** Credentials of the stored providers that are in force, by name. */
  readonly storedProviders: ReadonlyMap<string, StoredCredential | undefined>;
  /** Whether a path leads to a stored entry that is in force. */
  readonly isStored: (path: ConfigPath) => boolean;
  /** Whether the built-in providers are simulated when no provider is configured. */
  readonly simulatesByDefault: boolean;
};

/** Completes the checked input, and reports mistakes across settings. The result is meaningless after a report. */
export function resolve(
  input: FileInput,
  { file, secretsInFile, env, traceExport, metricExport, keys: readKeys, patterns, lists, ...facts }: FileFacts,
  report: Report,
): Config {
  const [http, grpc, operations] = resolveListeners(input, report);
  const keys = resolveKeys(input, readKeys, report);
  const providers = resolveProviders(input, { env, ...facts }, report);
  const { isStored } = facts;
  const { breaker, retries } = input;
  requireOrder(["breaker", "open_ms", "max_open_ms"], breaker.open_ms <= breaker.max_open_ms, { isStored, report });
  requireOrder(["retries", "base_ms", "cap_ms"], retries.base_ms <= retries.cap_ms, { isStored, report });
  for (const section of ["responses", "content"] as const)
    if (
      (input[section].store_days ?? 0) > 0 &&
      input.database.url !== undefined &&
      !keys.isSet(`${section}.encryption_key`)
    )
      report([section, "encryption_key"], `is required with ${SAME_KEY}`);
  if (
    Object.values(input.providers).some(({ account_credentials: own }) => own === "allowed") &&
    input.database.url !== undefined &&
    !keys.isSet("account_credentials.encryption_key")
  )
    report(["account_credentials", "encryption_key"], `is required with account_credentials: allowed and ${SAME_KEY}`);
  if (input.database.listen_url !== undefined && input.database.url === undefined)
    report(["database", "listen_url"], "is for a database.url");
  for (const name of ["read_url", "connections"] as const)
    if (input.database[name] !== undefined && input.database.url === undefined)
      report(["database", name], "is for a database.url");
  requirePair(input.redis.tls, ["redis", "tls"], report);
  requirePair(input.core.tls ?? {}, ["core", "tls"], report);
  const models = resolveModels(input, providers, report);
  const routes = resolveRoutes(input, models, report);
  checkInterchangeable(models, report);
  const asked = resolveImports(patterns, providers, report);
  const { imports, imported } = importModels({ asked, lists, input, models, providers, report });
  return {
    file,
    secretsInFile,
    http: {
      listen: http,
      corsOrigins: input.http.cors_origins,
      allowPublic: input.http.allow_public,
      publicUrl: input.http.public_url,
      trustedProxies: input.http.trusted_proxies,
      grpc: input.http.grpc,
      tls: resolveListenerTls("http", input, report),
    },
    grpc: {
      listen: grpc,
      maxReceiveBytes: Math.round(input.grpc.max_receive_mib * MIB),
      maxSendBytes: Math.round(input.grpc.max_send_mib * MIB),
      maxConnectionAgeMs: input.grpc.max_connection_age_ms,
      tls: resolveListenerTls("grpc", input, report),
    },
    operations: { listen: operations, tls: resolveListenerTls("operations", input, report) },
    access: resolveAccess(input, report),
    workers: input.workers,
    dataDir: resolvePath(input.data_dir),
    databaseUrl: input.database.url,
    databaseListenUrl: input.database.listen_url,
    databaseReadUrl: input.database.read_url,
    databaseConnections: input.database.connections,
    outage: {
      serveMs: input.outage.serve_ms,
      budgetShare: input.outage.budget_percent / 100,
      encryptionKey: keys.of("outage.encryption_key"),
    },
    redis: resolveRedis(input, report),
    core: { tls: input.core.tls && camelKeys(input.core.tls) },
    limits: resolveLimits(input.limits),
    burstMs: input.limits.burst_seconds * 1000,
    signUp: input.sign_up,
    signIn: resolveSignIn(
      input,
      { listen: http, sealsSecrets: keys.isSet("account_credentials.encryption_key") },
      report,
    ),
    ledger: { retentionMs: input.ledger.retention_days * DAY_MS, durability: input.ledger.durability },
    responses: {
      keptMs: input.responses.store_days * DAY_MS,
      encryptionKey: keys.of("responses.encryption_key"),
    },
    content: {
      keptMs: input.content.store_days && input.content.store_days * DAY_MS,
      encryptionKey: keys.of("content.encryption_key"),
    },
    accountCredentials: withoutUndefined({
      encryptionKey: keys.of("account_credentials.encryption_key"),
      previousEncryptionKey: keys.of("account_credentials.previous_encryption_key"),
    }),
    keySources: keys.sources,
    storedConfiguration: camelKeys(input.stored_configuration),
    stored: undefined,
    alerts: resolveAlerts(input.alerts, report),
    smtp: resolveSmtp(input.smtp, report),
    log: input.log,
    shutdown: camelKeys(input.shutdown),
    simulator: camelKeys(input.simulator),
    timeouts: camelKeys(input.timeouts),
    retries: camelKeys(input.retries),
    breaker: camelKeys(input.breaker),
    overload: camelKeys(input.overload),
    metrics: { ...input.metrics, export: metricExport },
    tracing: { ...camelKeys(input.tracing), export: traceExport },
    providers,
    models: [...models, ...imported],
    routes,
    imports,
    aliases: resolveAliases(input.aliases, [...models, ...routes], { isStored: facts.isStored, report }),
  };
}

/** Reports a setting that exceeds another one of its section: the stored one, where only one of them is stored. */
function requireOrder(
  [section, small, large]: readonly [section: string, small: string, large: string],
  isMet: boolean,
  { isStored, report }: Pick<FileFacts, "isStored"> & { readonly report: Report },
): void {
  if (isMet) return;
  if (isStored([section, large]) && !isStored([section, small])) report([section, large], `must be at least ${small}`);
  else report([section, small], `must be at most ${large}`);
}

/** The keys of encryption. */
interface Keys {
  readonly of: (setting: KeySetting) => string | undefined;
  readonly isSet: (setting: KeySetting) => boolean;
  readonly sources: readonly KeySource[];
}

/** Takes the keys of the file, and those that were read elsewhere. */
function resolveKeys(input: FileInput, read: ReadKeys, report: Report): Keys {
  const found = new Map<string, string | undefined>();
  const sources: KeySource[] = [];
  for (const [section, name] of KEY_SETTINGS) {
    const setting: KeySetting = `${section}.${name}`;
    const given = input[section] as Readonly<Record<string, unknown>>;
    const ways = [name, `${name}_file`, `${name}_command`].filter((way) => given[way] !== undefined);
    const [way, other] = ways;
    if (way === undefined) continue;
    if (other !== undefined) report([section, other], `is set beside ${way}; keep one of them`);
    found.set(setting, given[name] as string | undefined);
    if (way === name || other !== undefined) continue;
    const { [`${name}_file`]: file, [`${name}_command`]: command } = given;
    sources.push({ setting, file, command } as KeySource);
    if (read === "unread") continue;
    const key = read[setting] ?? { problem: "has not been read" };
    if ("problem" in key) report([section, way], key.problem);
    else found.set(setting, key.key);
  }
  return { of: (setting) => found.get(setting), isSet: (setting) => found.has(setting), sources };
}

function withoutUndefined<T extends object>(values: T): { readonly [K in keyof T]?: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: NonNullable<T[K]>;
  };
}

/** An alias that is the ID of a model would never be used. The file's goes before a stored model. */
function resolveAliases(
  aliases: FileInput["aliases"],
  models: readonly Pick<ModelConfig, "id">[],
  { isStored, report }: Pick<FileFacts, "isStored"> & { readonly report: Report },
): Config["aliases"] {
  const ids = new Set(models.map(({ id }) => id));
  for (const [name, model] of Object.entries(aliases)) {
    if (ids.has(name) && isStored(["models", name]) && !isStored(["aliases", name]))
      report(["models", name], "is the name of an alias of the configuration file already");
    else if (ids.has(name)) report(["aliases", name], "is the ID of a model already");
    if (ids.has(model)) continue;
    const meant = nearest(model, ids);
    report(
      ["aliases", name],
      `there is no model ${model}; ${meant === undefined ? "parley models lists them" : `did you mean ${meant}?`}`,
    );
  }
  return Object.entries(aliases);
}

function resolveSignIn(
  { sign_in: input, http: { public_url: publicUrl }, database: { url: databaseUrl } }: FileInput,
  { listen, sealsSecrets }: { readonly listen: ListenAddress; readonly sealsSecrets: boolean },
  report: Report,
): Config["signIn"] {
  const { password, second_factor: secondFactor, session_hours: hours, idle_minutes: minutes, oidc } = input;
  if (secondFactor === "required" && databaseUrl !== undefined && !sealsSecrets)
    report(
      ["sign_in", "second_factor"],
      "required with database.url needs account_credentials.encryption_key: without it nobody can set up an authenticator app",
    );
  if (!password && oidc === undefined) report(["sign_in", "password"], "can be false only with sign_in.oidc");
  if (oidc !== undefined) {
    const { client_secret: secret } = oidc;
    const weakness = secret.startsWith(KEY_FILE) ? undefined : sampleProblem(secret);
    if (weakness !== undefined) report(["sign_in", "oidc", "client_secret"], weakness);
    if (publicUrl === undefined && !isLoopback(listen.host))
      report(["sign_in", "oidc"], "needs http.public_url, the address to which the provider sends people back");
    if (oidc.default_role === "none" && Object.keys(oidc.roles).length === 0)
      report(["sign_in", "oidc", "default_role"], "with none, roles needs at least one group: nobody could sign in");
  }
  return {
    password,
    secondFactor,
    sessionMs: hours * HOUR_MS,
    idleMs: minutes * MINUTE_MS,
    oidc: oidc && camelKeys(oidc),
  };
}

function resolveLimits(input: FileInput["limits"]): Config["limits"] {
  const given = (limit: number | "unlimited"): number | undefined => (limit === "unlimited" ? undefined : limit);
  const budgetUsd = given(input.monthly_budget_usd);
  return {
    requestsPerMinute: given(input.requests_per_minute),
    tokensPerMinute: given(input.tokens_per_minute),
    concurrentRequests: given(input.concurrent_requests),
    monthlyBudgetMicroUsd: budgetUsd === undefined ? undefined : Math.round(budgetUsd * MICRO_USD),
  };
}

function resolveAlerts(input: FileInput["alerts"], report: Report): Config["alerts"] {
  const { allow_private: allowPrivate, ...thresholds } = input;
  const percents = thresholds.budget_percent ?? [];
  if (percents.some((percent, index) => index > 0 && percent <= percents[index - 1]!))
    report(["alerts", "budget_percent"], "must be ascending, such as [50, 80, 100]");
  return { thresholds: camelKeys(thresholds), allowPrivate };
}

/** Usual ports of e-mail servers. */
const SMTP_PORTS = { tls: 465, starttls: 587, none: 25 } as const;

function resolveSmtp(input: FileInput["smtp"], report: Report): Config["smtp"] {
  const { host, port, security, user, password, from, ca_file: caFile } = input;
  if (host === undefined) {
    const given = (["port", "user", "password", "from", "ca_file"] as const).find((key) => input[key] !== undefined);
    if (given !== undefined) report(["smtp", "host"], `is required with ${given}`);
    return undefined;
  }
  if (from === undefined) report(["smtp", "from"], "is required with host: the address that e-mail is sent from");
  if ((user === undefined) !== (password === undefined))
    report(["smtp", user === undefined ? "user" : "password"], "is required, or leave out user and password");
  return { host, port: port ?? SMTP_PORTS[security], security, user, password, from: from ?? "", caFile };
}

function resolveListeners(input: FileInput, report: Report): [ListenAddress, ListenAddress, ListenAddress] {
  const taken = new Map<string, string>();
  const resolveListener = (section: (typeof LISTENERS)[number]): ListenAddress => {
    const { listen, allow_public: allowPublic } = input[section];
    const address = parseListenAddress(listen);
    if (address === undefined) {
      report([section, "listen"], 'must be host:port, such as "127.0.0.1:8080" or "[::1]:8080"');
      return { host: "", port: 0 };
    }
    if (!isLoopback(address.host) && !allowPublic) {
      const advice = `to let other machines connect, write allow_public: true beside it in the section ${section}, or set PARLEY_${section.toUpperCase()}_ALLOW_PUBLIC=true`;
      report([section, "listen"], `this address is not loopback; ${advice}`);
    }
    const listens = address.port !== 0 && !(section === "grpc" && input.http.grpc);
    const other = listens ? taken.get(listen) : undefined;
    const advice = section === "grpc" && other === "http" ? ", or write http.grpc: true to share it" : "";
    if (other !== undefined)
      report([section, "listen"], `${other}.listen is the same address; choose another port${advice}`);
    if (listens) taken.set(listen, section);
    return address;
  };
  return [resolveListener("http"), resolveListener("grpc"), resolveListener("operations")];
}

function resolveListenerTls(
  name: (typeof LISTENERS)[number],
  input: FileInput,
  report: Report,
): ListenerTls | undefined {
  const { tls } = input[name];
  if (tls === undefined) return undefined;
  for (const key of ["client_certificates", "client_crl_file"] as const)
    if (tls[key] !== undefined && tls.client_ca_file === undefined)
      report([name, "tls", "client_ca_file"], `is required with ${key}`);
  return {
    certFile: tls.cert_file,
    keyFile: tls.key_file,
    clientCaFile: tls.client_ca_file,
    clientCrlFile: tls.client_crl_file,
    clientCertificates: tls.client_certificates ?? "required",
  };
}

function resolveAccess({ access, http, grpc }: FileInput, report: Report): Config["access"] {
  const { certificates } = access;
  const verifiesClients = (http.tls?.client_ca_file ?? grpc.tls?.client_ca_file) !== undefined;
  if (certificates.length > 0 && !verifiesClients)
    report(["access", "certificates"], "needs client_ca_file in http.tls or grpc.tls, whose certificates these are");
  const ofFronts = grpc.tls?.client_ca_file ?? (http.grpc ? http.tls?.client_ca_file : undefined);
  if (access.fronts.length > 0 && ofFronts === undefined)
    report(["access", "fronts"], "needs grpc.tls.client_ca_file, whose certificates these are");
  for (const index of repeated(certificates.map(({ name }) => name)))
    report(["access", "certificates", index, "name"], "is listed twice");
  for (const index of repeated(access.issuers.map(({ issuer }) => issuer)))
    report(["access", "issuers", index, "issuer"], "is listed twice");
  const issuers = access.issuers.map((input, index) => resolveIssuer(input, ["access", "issuers", index], report));
  return { certificates, fronts: access.fronts, issuers };
}

/** Indexes of values that are in the list before. */
function repeated(values: readonly string[]): number[] {
  const seen = new Set<string>();
  return values.flatMap((value, index) => (seen.size === seen.add(value).size ? [index] : []));
}

function resolveIssuer(input: IssuerInput, path: ConfigPath, report: Report): TokenIssuerConfig {
  const { issuer, audience, algorithms, bindings, keys_url: url, keys_file: file, keys_ca_file: caFile } = input;
  if ((url === undefined) === (file === undefined))
    report([...path, "keys_url"], "is required, or keys_file in its place, with the issuer's JSON Web Key Set");
  if (caFile !== undefined && url === undefined) report([...path, "keys_ca_file"], "is for keys_url");
  const keySet = file === undefined ? { url: url ?? "", caFile } : { file };
  return { issuer, audience, algorithms, bindings, clockSkewMs: input.clock_skew_seconds * 1000, keySet };
}

/** Default of `default_max_tokens`: enough for a long answer, and with reasoning for the reasoning tokens, too. */
const DEFAULT_MAX_TOKENS = 8192;
const DEFAULT_MAX_TOKENS_REASONING = 32_000;

/** Faster than the services of the built-in models. Providers with special hardware may be faster: then configure it. */
const DEFAULT_MAX_TOKENS_PER_SECOND = 1_000;

/** The built-in models with the file's changes, then the file's own models in their order, without names with targets. */
function resolveModels(input: FileInput, providers: readonly ProviderConfig[], report: Report): ModelConfig[] {
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
const DEFAULTS: ModelInput = {
  created: "1970-01-01",
  modalities: { input: ["text"], output: ["text"] },
};

/** Assumed where neither the file nor the list of known models has them. */
const DEFAULT_CONTEXT_WINDOW = 131_072;
const DEFAULT_MAX_OUTPUT_TOKENS = 32_768;

interface ModelParts {
  readonly id: string;
  readonly model: CompleteModelInput;
  readonly provider: ProviderConfig;
  readonly input: FileInput;
  readonly report: Report;
}

function resolveModel({ id, model, provider, input, report }: ModelParts): ModelConfig {
  const isCompletion = !isEmbedding(model);
  const preset = input.providers[provider.name]?.preset;
  const capabilities: CapabilitiesInput = {
    ...DIALECT_DEFAULTS[provider.dialect].capabilities,
    ...(preset !== undefined && (PRESETS[preset] as Preset).capabilities),
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
    maxTokensPerSecond: model.max_tokens_per_second ?? DEFAULT_MAX_TOKENS_PER_SECOND,
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

interface ImportParts extends Pick<ModelParts, "input" | "report"> {
  readonly asked: readonly Pick<ImportConfig, "provider" | "prefix">[];
  readonly lists: ModelLists;
  /** Those of the file, and the built-in ones. */
  readonly models: readonly ModelConfig[];
  readonly providers: readonly ProviderConfig[];
}

/**
 * The models of the lists that are known, of which each name is imported once: those of the file go before, then the first provider
 * that has it.
 */
function importModels({ asked, lists, input, models, providers, report }: ImportParts): {
  readonly imports: readonly ImportConfig[];
  readonly imported: readonly ModelConfig[];
} {
  const configured = new Set([
    ...models.map(({ id }) => id),
    ...Object.keys(input.models),
    ...Object.keys(input.aliases),
  ]);
  const beginnings = Object.keys(input.aliases).flatMap((alias) => (alias.endsWith("*") ? [alias.slice(0, -1)] : []));
  const isConfigured = (id: string): boolean =>
    configured.has(id) || beginnings.some((beginning) => id.startsWith(beginning));
  const imported = new Map<string, ModelConfig>();
  const imports = asked.map(({ provider: name, prefix }) => {
    const provider = providers.find((one) => one.name === name)!;
    const shadowed: string[] = [];
    for (const offered of (lists.get(name) ?? []).slice(0, MAX_IMPORTED)) {
      const id = prefix + offered.name;
      if (isConfigured(id) || !MODEL_ID.test(id)) continue;
      if (imported.has(id)) shadowed.push(offered.name);
      else imported.set(id, resolveOffered({ id, offered, provider, input, report }));
    }
    return { provider: name, prefix, shadowed: shadowed.slice(0, MAX_SHADOWED) };
  });
  return { imports, imported: [...imported.values()] };
}

/** Models of one list that are imported. */
const MAX_IMPORTED = 1_000;

/** Names that a warning has. */
const MAX_SHADOWED = 10;

/** A model with the facts of its provider's list before those of the list of known models. */
function resolveOffered({
  id,
  offered: { name, contextWindow, maxOutputTokens, outputModalities = ["text"] },
  ...parts
}: Omit<ModelParts, "model"> & { readonly offered: OfferedModel }): ModelConfig {
  const offered = { context_window: contextWindow, max_output_tokens: maxOutputTokens };
  const given = Object.entries(offered).filter(([, tokens]) => tokens !== undefined && tokens <= MAX_TOKENS);
  const modalities = { input: ["text"], output: outputModalities };
  const model = { ...DEFAULTS, modalities, description: id, provider: parts.provider.name, upstream_model: name };
  const resolved = resolveModel({
    id,
    model: { ...model, ...Object.fromEntries(given) } as CompleteModelInput,
    ...parts,
  });
  const { sources } = resolved;
  const ofProvider = <T>(source: T): T | "provider" => (source === "configured" ? "provider" : source);
  return {
    ...resolved,
    sources: {
      ...sources,
      contextWindow: ofProvider(sources.contextWindow),
      maxOutputTokens: ofProvider(sources.maxOutputTokens),
    },
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

/** Says that there is no provider of this name, and which there are. */
export function unknownProvider(name: string, providers: readonly ProviderConfig[]): string {
  const names = providers.map((provider) => provider.name);
  if (names.length === 0) return "there is no such provider; none is configured";
  const meant = nearest(name, names);
  return `there is no such provider; ${meant === undefined ? `there are: ${names.join(", ")}` : `did you mean ${meant}?`}`;
}

/**
 * Returns the configured providers. Unconfigured providers of the built-in models are simulated when no provider is
 * configured or when `simulator.enabled` is true: simulated answers must not replace a provider whose configuration was
 * forgotten, or whose stored entry is missing.
 */
function resolveProviders(
  input: FileInput,
  { simulatesByDefault, ...facts }: Pick<FileFacts, "env" | "storedProviders" | "simulatesByDefault">,
  report: Report,
): ProviderConfig[] {
  const configured = Object.keys(input.providers);
  const simulate = input.simulator.enabled ?? (simulatesByDefault && configured.length === 0);
  const names = new Set([...(simulate ? Object.keys(BUILT_IN_PROVIDERS) : []), ...configured]);
  const providers: ProviderConfig[] = [];
  for (const name of names) {
    const entry = input.providers[name];
    // Own properties only: a file's provider may be called "constructor".
    const builtIn = Object.hasOwn(BUILT_IN_PROVIDERS, name) ? BUILT_IN_PROVIDERS[name] : undefined;
    const dialect = entry?.dialect ?? builtIn;
    if (dialect === undefined) {
      report(["providers", name, "dialect"], `is required: one of ${DIALECTS.join(", ")}`);
    } else if (entry === undefined) {
      providers.push({ name, dialect, simulated: true });
    } else {
      providers.push(resolveRemote({ name, dialect, simulated: false, ...facts }, entry, report));
    }
  }
  return providers;
}

function resolveRemote(
  {
    env,
    storedProviders,
    ...base
  }: Pick<RemoteProvider, "name" | "dialect" | "simulated"> & Pick<FileFacts, "env" | "storedProviders">,
  given: ProviderInput,
  report: Report,
): ProviderConfig {
  const defaults = DIALECT_DEFAULTS[base.dialect];
  const path = ["providers", base.name];
  const headers = Object.entries(given.headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  const host = resolveHost({ entry: given, dialect: base.dialect, path, report });
  const baseUrl = given.base_url ?? addressOf(host) ?? defaults.baseUrl;
  const isStored = storedProviders.has(base.name);
  const isKeyed = given.preset !== undefined && (PRESETS[given.preset] as Preset).credential !== undefined;
  const stored = storedProviders.get(base.name);
  const lack = isStored
    ? lackOf(stored, { entry: given, baseUrl, needsCredential: defaults.needsCredential || isKeyed })
    : undefined;
  // The name of a file would be read here.
  if (stored?.apiKeys?.some((key) => key.startsWith(KEY_FILE)) === true)
    report([...path, "api_keys"], "a stored credential cannot be the name of a file");
  const entry = lack === undefined && stored !== undefined ? { ...given, api_keys: [...stored.apiKeys!] } : given;
  if (isStored) checkMachineIdentity(entry, { hasCredential: stored !== undefined, path, report });
  const lacksKeys = entry.host === undefined && entry.api_keys.length === 0 && headers.length === 0;
  if (defaults.needsCredential && lacksKeys && !isStored) {
    report([...path, "api_keys"], `is required for the dialect ${base.dialect}, such as ["\${${envName(base.name)}}"]`);
  }
  for (const name of Object.keys(entry.headers)) {
    const problem = credentialHeaderProblem(name.toLowerCase(), keyHeaderOf(base.dialect, host), entry);
    if (problem !== undefined) report([...path, "headers", name], problem);
  }
  if (entry.account_credentials === "allowed" && entry.host === "vertex")
    report([...path, "account_credentials"], "is not for the host vertex, which takes no API keys");
  if (entry.account_credentials === "allowed" && mayCarryCredential(entry))
    report(
      [...path, "account_credentials"],
      "is not for a provider without api_keys but with headers, which may carry its credential: they would be sent beside an account's own; write the credential in api_keys (for the header api-key of Azure with host: azure)",
    );
  // A private server may accept any key.
  const samples = entry.allow_private ? [] : entry.api_keys;
  samples.forEach((key, index) => {
    const weakness = key.startsWith(KEY_FILE) ? undefined : sampleProblem(key);
    if (weakness !== undefined) report([...path, "api_keys", index], weakness);
  });
  const problem = baseUrlProblem(baseUrl, entry.allow_private);
  if (problem !== undefined) report([...path, "base_url"], problem);
  else if (isStored && isMetadata(baseUrl))
    report(
      [...path, "base_url"],
      "this is a link-local address, or that of a cloud's metadata, which is for the file only",
    );
  return {
    ...base,
    host,
    baseUrl: baseUrl.replace(/\/+$/, ""),
    apiKeys: entry.api_keys,
    lack,
    takesAccountCredentials: entry.account_credentials === "allowed",
    allowPrivate: entry.allow_private,
    isStored,
    sendsTraceContext: entry.trace_context,
    headers: Object.fromEntries(headers),
    connections: camelKeys(entry.connections),
    checkedMs: entry.health.check === "none" ? undefined : entry.health.interval_ms,
    options: entry.options,
    egress: resolveEgress({ path, entry, baseUrl: URL.parse(baseUrl), env, report }),
  };
}

interface LackParts {
  readonly entry: ProviderInput;
  readonly baseUrl: string;
  readonly needsCredential: boolean;
}

/** Why a stored provider's credential cannot be used; undefined when it can, and when none is needed. */
function lackOf(
  credential: StoredCredential | undefined,
  { entry: { host, headers }, baseUrl, needsCredential }: LackParts,
): RemoteProvider["lack"] {
  if (credential === undefined) {
    const needsOne = host === "azure" || (needsCredential && host === undefined && Object.keys(headers).length === 0);
    return needsOne ? "missing" : undefined;
  }
  if (credential.apiKeys === undefined) return "unreadable";
  const isSame = credential.address === undefined || credential.address === URL.parse(baseUrl)?.origin;
  return isSame ? undefined : "other address";
}

/** A token of the machine's own identity at a cloud may go to the cloud only, and the stored configuration chooses the address. */
function checkMachineIdentity(
  { host, base_url: baseUrl }: ProviderInput,
  {
    hasCredential,
    path,
    report,
  }: { readonly hasCredential: boolean; readonly path: ConfigPath; readonly report: Report },
): void {
  if (host === "vertex" && hasCredential)
    report([...path, "host"], "takes no credential: the machine's own identity is used; remove the credential");
  if (host !== undefined && host !== "azure" && baseUrl !== undefined && !hasCredential)
    report([...path, "base_url"], `needs a credential: without one, the machine's identity is used, at ${host} only`);
}

interface EgressParts {
  readonly path: ConfigPath;
  readonly entry: ProviderInput;
  /** Null for one that is refused. */
  readonly baseUrl: URL | null;
  readonly env: Environment;
  readonly report: Report;
}

const PLAIN_HTTP = "is for https only, and base_url is plain http";

/** The way to a provider: its own proxy, else the environment's, if the provider is neither private nor exempt. */
function resolveEgress({ path, entry, baseUrl, env, report }: EgressParts): RemoteProvider["egress"] {
  const tls = camelKeys(entry.tls);
  requirePair(entry.tls, [...path, "tls"], report);
  const isPlain = baseUrl?.protocol === "http:";
  for (const key of ["proxy", "tls"] as const) {
    const isSet = key === "proxy" ? entry.proxy !== undefined && entry.proxy !== NO_PROXY : Object.keys(tls).length > 0;
    if (isPlain && isSet) report([...path, key], PLAIN_HTTP);
  }
  if (isPlain && entry.connections.http2) report([...path, "connections", "http2"], PLAIN_HTTP);
  if (entry.proxy !== undefined && entry.proxy !== NO_PROXY && entry.address !== undefined)
    report([...path, "address"], "has no effect with a proxy, which finds the address itself");
  const isExempt = isPlain || baseUrl === null || entry.address !== undefined || isWithoutProxy(baseUrl, env);
  const general = isExempt || privateReason(baseUrl) !== undefined ? undefined : proxyVariable(env)?.value;
  const proxy = entry.proxy === NO_PROXY ? undefined : (entry.proxy ?? general);
  return { proxy, address: entry.address, tls };
}

/** Reports a certificate without its key, and a key without its certificate. */
function requirePair(tls: ClientTlsInput, path: ConfigPath, report: Report): void {
  for (const [one, other] of [
    ["cert_file", "key_file"],
    ["key_file", "cert_file"],
  ] as const)
    if (tls[one] !== undefined && tls[other] === undefined) report([...path, other], `is required with ${one}`);
}

/** Why this header must not be set; undefined when it may, such as for a service with another kind of credential. */
function credentialHeaderProblem(name: string, credentialHeader: string, { api_keys, host }: ProviderInput) {
  if (name === "authorization" && host !== undefined && api_keys.length === 0)
    return `this header carries a token that Parley gets for the host ${host}; remove it`;
  if (name === credentialHeader) return "this header carries the credential; write that in api_keys";
  if (name === "authorization" && api_keys.length > 0) return "this is a second credential beside api_keys; remove one";
  return undefined;
}

/** Whether a header may carry the configured credential. Only `authorization` is known to; own credentials are sent without it. */
function mayCarryCredential({ api_keys, headers, host }: ProviderInput): boolean {
  if (host !== undefined || api_keys.length > 0) return false;
  return Object.keys(headers).some((name) => name.toLowerCase() !== "authorization");
}

function baseUrlProblem(text: string, allowPrivate: boolean): string | undefined {
  const url = URL.parse(text);
  if (url === null || !/^https?:\/\//i.test(text) || /\s/.test(text)) return 'must be an address, such as "https://…"';
  if (url.username !== "" || url.password !== "") return "must not contain a user or password; use api_keys or headers";
  if (url.search !== "" || url.hash !== "") return "must end before any ? or #";
  const reason = allowPrivate ? undefined : privateReason(url);
  if (reason === undefined) return undefined;
  return `this is ${reason}; if that is intended, write allow_private: true beside it in a file`;
}

function envName(provider: string): string {
  return `${provider.toUpperCase().replaceAll("-", "_")}_API_KEY`;
}
