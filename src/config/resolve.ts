import { resolve as resolvePath } from "node:path";
import { isLoopback, parseListenAddress } from "./addresses.ts";
import { camelKeys } from "./camel-keys.ts";
import type { Config, ListenAddress } from "./config.ts";
import type { Report } from "./config-error.ts";
import { resolveModels } from "./resolve-models.ts";
import { resolveProviders } from "./resolve-providers.ts";
import type { FileInput } from "./schema.ts";

const LISTENERS = ["http", "grpc", "operations"] as const;
const MIB = 1024 * 1024;
const DAY_MS = 24 * 60 * 60 * 1000;
const MICRO_USD = 1_000_000;

/** What is known of the file beside its settings. */
export type FileFacts = Pick<Config, "file" | "secretsInFile">;

/** Makes the checked input complete, and reports what only the whole of it shows. Meaningless after a report. */
export function resolve(input: FileInput, { file, secretsInFile }: FileFacts, report: Report): Config {
  const [http, grpc, operations] = resolveListeners(input, report);
  const providers = resolveProviders(input, report);
  if (input.breaker.open_ms > input.breaker.max_open_ms) report(["breaker", "open_ms"], "must be at most max_open_ms");
  if (input.retries.base_ms > input.retries.cap_ms) report(["retries", "base_ms"], "must be at most cap_ms");
  const models = resolveModels(input, providers, report);
  if (models.length === 0) {
    const names = providers.map(({ name }) => name).join(", ") || "any provider, for there is none";
    report(["models"], `no model is left: none uses ${names}, and the built-in ones need alpha or beta; add one here`);
  }
  return {
    file,
    secretsInFile,
    http: {
      listen: http,
      corsOrigins: input.http.cors_origins,
      allowPublic: input.http.allow_public,
      publicUrl: input.http.public_url,
      trustedProxies: input.http.trusted_proxies,
    },
    grpc: {
      listen: grpc,
      maxReceiveBytes: Math.round(input.grpc.max_receive_mib * MIB),
      maxSendBytes: Math.round(input.grpc.max_send_mib * MIB),
      maxConnectionAgeMs: input.grpc.max_connection_age_ms,
    },
    operations: { listen: operations },
    workers: input.workers,
    dataDir: resolvePath(input.data_dir),
    databaseUrl: input.database.url,
    redisUrl: input.redis.url,
    limits: resolveLimits(input.limits),
    signUp: input.sign_up,
    ledger: { retentionMs: input.ledger.retention_days * DAY_MS },
    log: input.log,
    shutdown: camelKeys(input.shutdown),
    simulator: camelKeys(input.simulator),
    timeouts: camelKeys(input.timeouts),
    retries: camelKeys(input.retries),
    breaker: camelKeys(input.breaker),
    overload: camelKeys(input.overload),
    providers,
    models,
  };
}

function resolveLimits(input: FileInput["limits"]): Config["limits"] {
  const given = (limit: number | "unlimited"): number | undefined => (limit === "unlimited" ? undefined : limit);
  const budgetUsd = given(input.monthly_budget_usd);
  return {
    account: {
      requestsPerMinute: given(input.requests_per_minute),
      tokensPerMinute: given(input.tokens_per_minute),
      concurrentRequests: given(input.concurrent_requests),
      monthlyBudgetMicroUsd: budgetUsd === undefined ? undefined : Math.round(budgetUsd * MICRO_USD),
    },
    burstMs: input.burst_seconds * 1000,
  };
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
    const other = address.port === 0 ? undefined : taken.get(listen);
    if (other !== undefined) report([section, "listen"], `${other}.listen is the same address; choose another port`);
    taken.set(listen, section);
    return address;
  };
  return [resolveListener("http"), resolveListener("grpc"), resolveListener("operations")];
}
