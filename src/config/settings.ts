import { KEY_SETTINGS } from "./encryption-keys.ts";
import type { ClientTls, Config, ListenAddress, ListenerTls, RedisConfig } from "./config.ts";

/** One setting in the form of the configuration file. */
export interface Setting {
  /** Such as `http.public_url`. */
  readonly key: string;
  /** Empty when it is not set. */
  readonly value: string;
}

const MINUTE_MS = 60 * 1000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const MIB = 1024 * 1024;
const MICRO_USD = 1_000_000;

/** Lists the settings in force, without providers, models and secrets, in the order of the documentation. */
export function listSettings(config: Config): Setting[] {
  const { http, grpc, limits, timeouts, retries, breaker, overload, shutdown, simulator, metrics, tracing, ...others } =
    redactConfig(config);
  const { alerts, smtp } = others;
  const { redis } = others;
  const sentinel = redis?.place.mode === "sentinel" ? redis.place : undefined;
  const settings: Readonly<Record<string, string | number | readonly string[] | undefined>> = {
    sign_up: others.signUp,
    ...signInSettings(others.signIn),
    "http.public_url": http.publicUrl,
    "http.listen": formatAddress(http.listen),
    "http.cors_origins": http.corsOrigins,
    "http.trusted_proxies": http.trustedProxies,
    "http.grpc": String(http.grpc),
    ...tlsSettings("http", http.tls),
    "grpc.listen": formatAddress(grpc.listen),
    "grpc.max_receive_mib": grpc.maxReceiveBytes / MIB,
    "grpc.max_send_mib": grpc.maxSendBytes / MIB,
    "grpc.max_connection_age_ms": grpc.maxConnectionAgeMs,
    ...tlsSettings("grpc", grpc.tls),
    "operations.listen": formatAddress(others.operations.listen),
    ...tlsSettings("operations", others.operations.tls),
    "access.certificates": others.access.certificates.map(({ name, key }) => `${name} = ${key}`),
    "access.fronts": others.access.fronts,
    "access.issuers": others.access.issuers.map(({ issuer, audience }) => `${issuer} for ${audience}`),
    workers: others.workers,
    data_dir: others.dataDir,
    "database.url": others.databaseUrl,
    "database.listen_url": others.databaseListenUrl,
    "database.read_url": others.databaseReadUrl,
    "database.connections": others.databaseConnections,
    "outage.serve_ms": others.outage.serveMs,
    "outage.budget_percent": others.outage.budgetShare * 100,
    "outage.encryption_key": others.outage.encryptionKey,
    "redis.url": redis?.url,
    "redis.mode": redis?.place.mode,
    "redis.sentinel.master": sentinel?.master,
    "redis.sentinel.username": sentinel?.username,
    "redis.sentinel.password": sentinel?.password,
    ...clientTlsSettings("redis", redis?.tls ?? {}),
    ...clientTlsSettings("core", others.core.tls ?? {}),
    "core.tls.server_name": others.core.tls?.serverName,
    "ledger.retention_days": others.ledger.retentionMs / DAY_MS,
    "ledger.durability": others.ledger.durability,
    "responses.store_days": others.responses.keptMs / DAY_MS,
    "responses.encryption_key": others.responses.encryptionKey,
    "content.store_days": others.content.keptMs && others.content.keptMs / DAY_MS,
    "content.encryption_key": others.content.encryptionKey,
    "account_credentials.encryption_key": others.accountCredentials.encryptionKey,
    "account_credentials.previous_encryption_key": others.accountCredentials.previousEncryptionKey,
    ...keySettings(others.keySources),
    "stored_configuration.enabled": String(others.storedConfiguration.enabled),
    "stored_configuration.allow_private": String(others.storedConfiguration.allowPrivate),
    "alerts.budget_percent": alerts.thresholds.budgetPercent?.map(String),
    "alerts.key_expiry_days": alerts.thresholds.keyExpiryDays,
    "alerts.error_percent": alerts.thresholds.errorPercent,
    "alerts.min_requests": alerts.thresholds.minRequests,
    "alerts.latency_factor": alerts.thresholds.latencyFactor,
    "alerts.spend_factor": alerts.thresholds.spendFactor,
    "alerts.spend_minimum_usd": alerts.thresholds.spendMinimumUsd,
    "alerts.allow_private": String(alerts.allowPrivate),
    "smtp.host": smtp?.host,
    "smtp.port": smtp?.port,
    "smtp.security": smtp?.security,
    "smtp.user": smtp?.user,
    "smtp.password": smtp?.password,
    "smtp.from": smtp?.from,
    "smtp.ca_file": smtp?.caFile,
    "log.level": others.log.level,
    "shutdown.delay_ms": shutdown.delayMs,
    "shutdown.drain_ms": shutdown.drainMs,
    "metrics.keys": metrics.keys,
    "metrics.tags": metrics.tags,
    "tracing.slow_ms": tracing.slowMs,
    "tracing.url": tracing.url,
    "limits.requests_per_minute": limits.requestsPerMinute ?? UNLIMITED,
    "limits.tokens_per_minute": limits.tokensPerMinute ?? UNLIMITED,
    "limits.concurrent_requests": limits.concurrentRequests ?? UNLIMITED,
    "limits.monthly_budget_usd":
      limits.monthlyBudgetMicroUsd === undefined ? UNLIMITED : limits.monthlyBudgetMicroUsd / MICRO_USD,
    "limits.burst_seconds": others.burstMs / 1000,
    "timeouts.connect_ms": timeouts.connectMs,
    "timeouts.first_content_ms": timeouts.firstContentMs,
    "timeouts.idle_ms": timeouts.idleMs,
    "timeouts.total_ms": timeouts.totalMs,
    "timeouts.settle_ms": timeouts.settleMs,
    "retries.base_ms": retries.baseMs,
    "retries.cap_ms": retries.capMs,
    "breaker.failures": breaker.failures,
    "breaker.open_ms": breaker.openMs,
    "breaker.max_open_ms": breaker.maxOpenMs,
    "overload.max_calls": overload.maxCalls,
    "overload.max_wait_ms": overload.maxWaitMs,
    "overload.max_connections": overload.maxConnections ?? AUTOMATIC,
    "overload.max_connections_per_address": overload.maxConnectionsPerAddress ?? AUTOMATIC,
    aliases: others.aliases.map(([name, model]) => `${name}: ${model}`),
    "simulator.tokens_per_second": simulator.tokensPerSecond,
    "simulator.first_token_ms": simulator.firstTokenMs,
  };
  return Object.entries(settings).map(([key, value]) => ({
    key,
    value: typeof value === "object" ? value.join(", ") : String(value ?? ""),
  }));
}

function signInSettings({
  password,
  secondFactor,
  sessionMs,
  idleMs,
  oidc,
}: Config["signIn"]): Record<string, string | number | readonly string[] | undefined> {
  return {
    "sign_in.password": String(password),
    "sign_in.second_factor": secondFactor,
    "sign_in.session_hours": sessionMs / HOUR_MS,
    "sign_in.idle_minutes": idleMs / MINUTE_MS,
    "sign_in.oidc.issuer": oidc?.issuer,
    "sign_in.oidc.client_id": oidc?.clientId,
    "sign_in.oidc.client_secret": oidc?.clientSecret,
    "sign_in.oidc.name": oidc?.name,
    "sign_in.oidc.scopes": oidc?.scopes,
    "sign_in.oidc.groups_claim": oidc?.groupsClaim,
    "sign_in.oidc.roles": oidc && Object.entries(oidc.roles).map(([group, role]) => `${group}: ${role}`),
    "sign_in.oidc.default_role": oidc?.defaultRole,
    "sign_in.oidc.domains": oidc?.domains,
    "sign_in.oidc.auth_time": oidc?.authTime,
  };
}

function redactRedis(redis: RedisConfig): RedisConfig {
  const { place } = redis;
  const hidden = place.mode === "sentinel" ? { ...place, password: place.password && HIDDEN } : place;
  return { ...redis, url: HIDDEN, place: hidden };
}

function tlsSettings(section: string, tls: ListenerTls | undefined): Record<string, string | undefined> {
  return {
    [`${section}.tls.cert_file`]: tls?.certFile,
    [`${section}.tls.key_file`]: tls?.keyFile,
    [`${section}.tls.client_ca_file`]: tls?.clientCaFile,
    [`${section}.tls.client_crl_file`]: tls?.clientCrlFile,
    [`${section}.tls.client_certificates`]: tls?.clientCaFile && tls.clientCertificates,
  };
}

function clientTlsSettings(section: string, tls: ClientTls): Record<string, string | undefined> {
  return {
    [`${section}.tls.ca_file`]: tls.caFile,
    [`${section}.tls.cert_file`]: tls.certFile,
    [`${section}.tls.key_file`]: tls.keyFile,
  };
}

const UNLIMITED = "unlimited";
const AUTOMATIC = "automatic";

/** `host:port`, with IPv6 addresses in brackets. */
export function formatAddress({ host, port }: ListenAddress): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Sources of keys of encryption, by their settings. */
function keySettings(sources: Config["keySources"]): Readonly<Record<string, string | readonly string[] | undefined>> {
  const settings: Record<string, string | readonly string[] | undefined> = {};
  for (const [section, name] of KEY_SETTINGS) {
    const setting = `${section}.${name}`;
    const source = sources.find((each) => each.setting === setting);
    settings[`${setting}_file`] = source?.file;
    settings[`${setting}_command`] = source?.command;
  }
  return settings;
}

/** In place of a secret. */
export const HIDDEN = "…";
const NO_LISTEN = "none";

/** Copies the configuration with credentials and header values hidden, so that it can be logged or printed. */
export function redactConfig(config: Config): Config {
  return {
    ...config,
    databaseUrl: config.databaseUrl && HIDDEN,
    databaseListenUrl: config.databaseListenUrl === NO_LISTEN ? NO_LISTEN : config.databaseListenUrl && HIDDEN,
    databaseReadUrl: config.databaseReadUrl && HIDDEN,
    outage: { ...config.outage, encryptionKey: config.outage.encryptionKey && HIDDEN },
    redis: config.redis && redactRedis(config.redis),
    responses: { ...config.responses, encryptionKey: config.responses.encryptionKey && HIDDEN },
    content: { ...config.content, encryptionKey: config.content.encryptionKey && HIDDEN },
    accountCredentials: Object.fromEntries(Object.keys(config.accountCredentials).map((key) => [key, HIDDEN])),
    signIn: { ...config.signIn, oidc: config.signIn.oidc && { ...config.signIn.oidc, clientSecret: HIDDEN } },
    // Arguments may be secrets of the program.
    keySources: config.keySources.map(({ command, ...source }) => {
      return {
        ...source,
        ...(command !== undefined && { command: [command[0]!, ...command.slice(1).map(() => HIDDEN)] }),
      };
    }),
    smtp: config.smtp && { ...config.smtp, password: config.smtp.password && HIDDEN },
    providers: config.providers.map((provider) =>
      provider.simulated
        ? provider
        : {
            ...provider,
            apiKeys: provider.apiKeys.map(() => HIDDEN),
            headers: Object.fromEntries(Object.keys(provider.headers).map((name) => [name, HIDDEN])),
            egress: { ...provider.egress, proxy: provider.egress.proxy && HIDDEN },
          },
    ),
  };
}
