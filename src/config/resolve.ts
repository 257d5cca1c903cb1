import { resolve as resolvePath } from "node:path";
import { nearest } from "../encoding/nearest.ts";
import { resolveAccess, resolveSignIn } from "./access.ts";
import type { ConfigPath, Report } from "./config-error.ts";
import { camelKeys, type Config, type ModelConfig } from "./config.ts";
import { KEY_SETTINGS, type KeySetting, type KeySource, type ReadKeys } from "./encryption-keys.ts";
import { importModels, type ModelLists, resolveImports } from "./imports.ts";
import { checkInterchangeable } from "./interchangeable.ts";
import { resolveListeners, resolveListenerTls } from "./listeners.ts";
import { resolveModels } from "./model-entries.ts";
import { type ProviderFacts, requirePair, resolveProviders } from "./providers.ts";
import { resolveRedis } from "./redis.ts";
import { resolveRoutes } from "./routes.ts";
import type { FileInput } from "./schema.ts";

const MIB = 1024 * 1024;
const DAY_MS = 24 * 60 * 60 * 1000;
const MICRO_USD = 1_000_000;

const SAME_KEY =
  'database.url, because all replicas need the same key; write "${NAME}" with the output of "openssl rand -base64 32"';

/** Facts of the file that are not settings. */
export type FileFacts = Pick<Config, "file" | "secretsInFile"> &
  ProviderFacts & {
    readonly traceExport: Config["tracing"]["export"];
    readonly metricExport: Config["metrics"]["export"];
    readonly keys: ReadKeys;
    /** Entries of `models` that import. */
    readonly patterns: readonly string[];
    /** Known lists by the names of providers. */
    readonly lists: ModelLists;
    /** Whether a path leads to a stored entry that is in force. */
    readonly isStored: (path: ConfigPath) => boolean;
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
