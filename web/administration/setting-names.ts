import { formatDuration } from "../format/duration.ts";
import { formatCount } from "../format/number.ts";

/** Groups of settings by key prefix. */
export const SETTING_GROUPS: readonly (readonly [title: string, prefixes: readonly string[]])[] = [
  ["Access", ["sign_up", "sign_in", "http.public_url", "access"]],
  ["Default account limits", ["limits"]],
  [
    "Data",
    [
      "data_dir",
      "database",
      "outage",
      "redis",
      "ledger",
      "responses",
      "content",
      "account_credentials",
      "stored_configuration",
    ],
  ],
  [
    "Network",
    ["http.listen", "http.cors_origins", "http.trusted_proxies", "http.grpc", "http.tls", "grpc", "operations", "core"],
  ],
  ["Timeouts, retries and overload", ["timeouts", "retries", "breaker", "overload"]],
  ["Alerts and e-mail", ["alerts", "smtp"]],
  ["Models", ["aliases"]],
  ["Process", ["workers", "log", "shutdown", "metrics", "tracing", "simulator"]],
];

const NAMES: Readonly<Record<string, string>> = {
  sign_up: "Sign-up",
  "sign_in.password": "Sign-in with a password",
  "sign_in.second_factor": "Second factor",
  "sign_in.session_hours": "Session lifetime",
  "sign_in.idle_minutes": "Session idle timeout",
  "sign_in.oidc.issuer": "OpenID provider",
  "sign_in.oidc.client_id": "Client ID at the OpenID provider",
  "sign_in.oidc.client_secret": "Client secret at the OpenID provider",
  "sign_in.oidc.name": "Name of the OpenID provider",
  "sign_in.oidc.scopes": "Scopes requested from the OpenID provider",
  "sign_in.oidc.groups_claim": "Claim with groups",
  "sign_in.oidc.roles": "Roles by group",
  "sign_in.oidc.default_role": "Default role (no mapped group)",
  "sign_in.oidc.domains": "Domains that sign in at the OpenID provider",
  "sign_in.oidc.auth_time": "auth_time claim of the OpenID provider",
  "http.public_url": "Public URL",
  "http.listen": "HTTP address",
  "http.cors_origins": "CORS origins",
  "http.trusted_proxies": "Trusted proxies",
  "http.grpc": "gRPC on the HTTP port",
  "grpc.listen": "gRPC address",
  "grpc.max_receive_mib": "Max gRPC request size (MiB)",
  "grpc.max_send_mib": "Max gRPC response size (MiB)",
  "grpc.max_connection_age_ms": "Max gRPC connection age",
  "operations.listen": "Operations address (metrics, health)",
  "http.tls.cert_file": "HTTP certificate",
  "http.tls.key_file": "Private key of the HTTP certificate",
  "http.tls.client_ca_file": "Authorities of HTTP clients",
  "http.tls.client_crl_file": "Revocation lists of HTTP clients",
  "http.tls.client_certificates": "Certificates of HTTP clients",
  "grpc.tls.cert_file": "gRPC certificate",
  "grpc.tls.key_file": "Private key of the gRPC certificate",
  "grpc.tls.client_ca_file": "Authorities of gRPC clients",
  "grpc.tls.client_crl_file": "Revocation lists of gRPC clients",
  "grpc.tls.client_certificates": "Certificates of gRPC clients",
  "operations.tls.cert_file": "Operations certificate",
  "operations.tls.key_file": "Private key of the operations certificate",
  "operations.tls.client_ca_file": "Authorities of operations clients",
  "operations.tls.client_crl_file": "Revocation lists of operations clients",
  "operations.tls.client_certificates": "Certificates of operations clients",
  "access.certificates": "Certificates that stand for keys",
  "access.fronts": "Certificates of fronts",
  "access.issuers": "Issuers of tokens that stand for keys",
  workers: "Worker processes",
  data_dir: "Data directory",
  "database.url": "PostgreSQL",
  "database.listen_url": "PostgreSQL for notifications",
  "database.read_url": "PostgreSQL for reports",
  "database.connections": "PostgreSQL connections of each process",
  "outage.serve_ms": "Validity of known keys without the database",
  "outage.budget_percent": "Budget share held for database outages (percent)",
  "outage.encryption_key": "Encryption key of known keys",
  "outage.encryption_key_file": "File of the encryption key of known keys",
  "outage.encryption_key_command": "Command for the encryption key of known keys",
  "redis.url": "Redis",
  "redis.mode": "Mode of Redis",
  "redis.sentinel.master": "Master that the Sentinels monitor",
  "redis.sentinel.username": "User at the Sentinels",
  "redis.sentinel.password": "Password of the Sentinels",
  "redis.tls.ca_file": "Authorities of Redis",
  "redis.tls.cert_file": "Certificate for Redis",
  "redis.tls.key_file": "Private key of the certificate for Redis",
  "core.tls.ca_file": "Authorities of cores",
  "core.tls.cert_file": "Certificate for cores",
  "core.tls.key_file": "Private key of the certificate for cores",
  "core.tls.server_name": "Name in the certificates of cores",
  "ledger.retention_days": "Request retention",
  "ledger.durability": "Durability of request records",
  "responses.store_days": "Stored response retention",
  "responses.encryption_key": "Encryption key of stored responses",
  "responses.encryption_key_file": "File of the encryption key of stored responses",
  "responses.encryption_key_command": "Command for the encryption key of stored responses",
  "content.store_days": "Retention of stored prompts and answers",
  "content.encryption_key": "Encryption key of stored prompts and answers",
  "content.encryption_key_file": "File of the encryption key of stored prompts and answers",
  "content.encryption_key_command": "Command for the encryption key of stored prompts and answers",
  "account_credentials.encryption_key": "Encryption key of credentials in the database",
  "account_credentials.encryption_key_file": "File of the encryption key of credentials in the database",
  "account_credentials.encryption_key_command": "Command for the encryption key of credentials in the database",
  "account_credentials.previous_encryption_key": "Previous encryption key of credentials in the database",
  "account_credentials.previous_encryption_key_file": "File of the previous encryption key of credentials",
  "account_credentials.previous_encryption_key_command": "Command for the previous encryption key of credentials",
  "stored_configuration.enabled": "Stored configuration",
  "stored_configuration.allow_private": "Private addresses in the stored configuration",
  "alerts.budget_percent": "Budget alerts (percent)",
  "alerts.key_expiry_days": "Key expiry alerts (time before)",
  "alerts.error_percent": "Error rate alerts (percent)",
  "alerts.min_requests": "Minimum requests in ten minutes for alerts",
  "alerts.latency_factor": "Latency alerts (times the usual)",
  "alerts.spend_factor": "Spending alerts (times the usual)",
  "alerts.spend_minimum_usd": "Minimum hourly spending for alerts (USD)",
  "alerts.allow_private": "Private addresses of webhooks",
  "smtp.host": "E-mail server",
  "smtp.port": "Port of the e-mail server",
  "smtp.security": "Encryption to the e-mail server",
  "smtp.user": "User at the e-mail server",
  "smtp.password": "Password at the e-mail server",
  "smtp.from": "Sender of e-mail",
  "smtp.ca_file": "Authorities of the e-mail server",
  "log.level": "Log level",
  "shutdown.delay_ms": "Shutdown delay",
  "shutdown.drain_ms": "Drain timeout",
  "metrics.keys": "Keys with separate metrics",
  "metrics.tags": "Tags with separate metrics",
  "tracing.slow_ms": "Always trace requests slower than",
  "tracing.url": "Trace link",
  "limits.requests_per_minute": "Requests per minute",
  "limits.tokens_per_minute": "Tokens per minute",
  "limits.concurrent_requests": "Concurrent requests",
  "limits.monthly_budget_usd": "Monthly budget (USD)",
  "limits.burst_seconds": "Burst size",
  "timeouts.connect_ms": "Connect timeout",
  "timeouts.first_content_ms": "First-token timeout",
  "timeouts.idle_ms": "Stream idle timeout",
  "timeouts.total_ms": "Total timeout (all attempts)",
  "timeouts.settle_ms": "Settlement timeout (token usage after a client disconnects)",
  "retries.base_ms": "Base retry backoff",
  "retries.cap_ms": "Max provider retry-after",
  "breaker.failures": "Circuit breaker: failure threshold",
  "breaker.open_ms": "Circuit breaker: initial open time",
  "breaker.max_open_ms": "Circuit breaker: max open time",
  "overload.max_wait_ms": "Queue timeout",
  "overload.max_calls": "Max concurrent calls per process",
  "overload.max_connections": "Max connections per process",
  "overload.max_connections_per_address": "Max connections per address",
  aliases: "Aliases",
  "simulator.tokens_per_second": "Simulator: tokens per second",
  "simulator.first_token_ms": "Simulator: time to first token",
};

/** Returns the display name of a setting. */
export function settingName(key: string): string {
  return NAMES[key] ?? key;
}

/** Shown for a setting without a value. */
export const NOT_SET = "Not set";

/** Formats the value of a setting for display. */
export function describeValue(key: string, value: string): string {
  if (value === "") return NOT_SET;
  if (value === "…") return "Set (hidden)";
  if (key === "sign_up") return SIGN_UP[value] ?? value;
  if (key.endsWith("_ms")) return formatWait(Number(value));
  if (key.endsWith("_seconds")) return `${formatWait(Number(value) * 1_000)} of the rate`;
  if (key.endsWith("_hours")) return `${formatCount(Number(value))} h`;
  if (key.endsWith("_minutes")) return formatWait(Number(value) * 60_000);
  if (key.endsWith("_days")) return `${formatCount(Number(value))} days`;
  if (value === "unlimited") return "Unlimited";
  if (value === "true" || value === "false") return value === "true" ? "On" : "Off";
  return /^\d+$/.test(value) ? formatCount(Number(value)) : value;
}

const WAITS = [
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1_000],
] as const;

/** Formats a configured duration in the largest unit that divides it: `5 s`, `15 min`. */
function formatWait(ms: number): string {
  const [unit, lengthMs] = WAITS.find(([, each]) => ms >= each && ms % each === 0) ?? [];
  return unit === undefined ? formatDuration(ms) : `${formatCount(ms / lengthMs)} ${unit}`;
}

const SIGN_UP: Readonly<Record<string, string>> = {
  open: "Open to everyone",
  invited: "Invitation only",
  closed: "Closed (accounts are created on the command line)",
};
