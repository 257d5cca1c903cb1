import { formatDuration } from "../format/duration.ts";
import { formatCount } from "../format/number.ts";

/** What belongs together, by the beginnings of the keys. */
export const SETTING_GROUPS: readonly (readonly [title: string, prefixes: readonly string[]])[] = [
  ["People", ["sign_up", "http.public_url"]],
  ["Limits of accounts without their own", ["limits"]],
  ["Data", ["data_dir", "database", "redis", "ledger"]],
  ["Network", ["http.listen", "http.cors_origins", "http.trusted_proxies", "grpc", "operations"]],
  ["Time and trouble", ["timeouts", "retries", "breaker", "overload"]],
  ["Process", ["workers", "log", "shutdown", "simulator"]],
];

const NAMES: Readonly<Record<string, string>> = {
  sign_up: "Who may make an account",
  "http.public_url": "Address of the dashboard",
  "http.listen": "HTTP listens on",
  "http.cors_origins": "Pages that may call /v1",
  "http.trusted_proxies": "Proxies that are believed",
  "grpc.listen": "gRPC listens on",
  "grpc.max_receive_mib": "Largest gRPC request, in MiB",
  "grpc.max_send_mib": "Largest gRPC answer, in MiB",
  "grpc.max_connection_age_ms": "Age at which a gRPC connection is told to go",
  "operations.listen": "Metrics and health listen on",
  workers: "Processes that serve",
  data_dir: "Folder for data",
  "database.url": "PostgreSQL",
  "redis.url": "Redis",
  "ledger.retention_days": "Requests are kept",
  "log.level": "Log level",
  "shutdown.delay_ms": "Served after being told to stop",
  "shutdown.drain_ms": "Calls may go on after that",
  "limits.requests_per_minute": "Requests per minute",
  "limits.tokens_per_minute": "Tokens per minute",
  "limits.concurrent_requests": "Requests at the same time",
  "limits.monthly_budget_usd": "Budget per month, in USD",
  "limits.burst_seconds": "Of a rate, usable at once",
  "timeouts.connect_ms": "To connect to a provider",
  "timeouts.first_content_ms": "To an answer’s first content",
  "timeouts.idle_ms": "Longest silence within an answer",
  "timeouts.total_ms": "All attempts together",
  "timeouts.settle_ms": "For the token count of an answer whose caller left",
  "retries.base_ms": "Wait before a retry, at most",
  "retries.cap_ms": "Longest wait that a provider may ask for",
  "breaker.failures": "Failures in a row that let a model rest",
  "breaker.open_ms": "First rest",
  "breaker.max_open_ms": "Longest rest",
  "overload.max_wait_ms": "Longest wait of a completion to be begun",
  "overload.max_calls": "Calls under way in one process",
  "overload.max_connections": "Open connections of one process",
  "overload.max_connections_per_address": "Open connections of one address",
  "simulator.tokens_per_second": "Simulator: tokens per second",
  "simulator.first_token_ms": "Simulator: wait before an answer",
};

/** What a setting is called. */
export function settingName(key: string): string {
  return NAMES[key] ?? key;
}

/** What a setting is, in words. */
export function describeValue(key: string, value: string): string {
  if (value === "") return "Not set";
  if (value === "…") return "Set, and not shown";
  if (key === "sign_up") return SIGN_UP[value] ?? value;
  if (key.endsWith("_ms")) return formatWait(Number(value));
  if (key.endsWith("_seconds")) return `As much as in ${formatWait(Number(value) * 1_000)}`;
  if (key.endsWith("_days")) return `${formatCount(Number(value))} days`;
  if (value === "unlimited") return "Unlimited";
  return /^\d+$/.test(value) ? formatCount(Number(value)) : value;
}

const WAITS = [
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1_000],
] as const;

/** A time that somebody has chosen, which is mostly a round one: `5 s`, `15 min`. */
function formatWait(ms: number): string {
  const [unit, lengthMs] = WAITS.find(([, each]) => ms >= each && ms % each === 0) ?? [];
  return unit === undefined ? formatDuration(ms) : `${formatCount(ms / lengthMs)} ${unit}`;
}

const SIGN_UP: Readonly<Record<string, string>> = {
  open: "Everybody who reaches the dashboard",
  invited: "Who has an invitation",
  closed: "Nobody: the command line makes accounts",
};
