import { z } from "zod";
import { DIALECTS, PROVIDER_OPTIONS } from "./dialects.ts";
import { HOSTS } from "./hosts.ts";
import {
  absolutePath,
  apiVersion,
  certificateName,
  command,
  credential,
  databaseListenUrl,
  databaseUrl,
  encryptionKey,
  headerName,
  headerValue,
  httpsUrl,
  ipAddress,
  isoDate,
  keyId,
  labelValue,
  mailDomain,
  modelAlias,
  modelId,
  network,
  oidcIssuer,
  origin,
  providerName,
  project,
  proxy,
  publicUrl,
  redisUrl,
  region,
  scope,
  traceUrl,
  hedgeAfter,
} from "./scalars.ts";
import { describeUnknownKey } from "./describe.ts";
import { MAX_PROBLEMS } from "./document.ts";
import { PRESET_NAMES } from "./presets.ts";

/** A map with exactly these keys. The error has one line for each of the first MAX_PROBLEMS unknown keys, in the order of the issue's `keys`. */
function section<Shape extends z.ZodRawShape>(shape: Shape) {
  const known = Object.keys(shape);
  return z.strictObject(shape, {
    error: (issue) =>
      issue.code === "unrecognized_keys"
        ? issue.keys
            .slice(0, MAX_PROBLEMS)
            .map((key) => describeUnknownKey(key, known))
            .join("\n")
        : undefined,
  });
}

/** The settings of a key of encryption: the key itself, or where it is read. */
function keyOf<Name extends string>(name: Name) {
  return {
    [name]: z.exactOptional(encryptionKey),
    [`${name}_file`]: z.exactOptional(absolutePath),
    [`${name}_command`]: z.exactOptional(command),
  } as Record<Name, z.ZodExactOptional<typeof encryptionKey>> &
    Record<`${Name}_file`, z.ZodExactOptional<typeof absolutePath>> &
    Record<`${Name}_command`, z.ZodExactOptional<typeof command>>;
}

/** Like `section`, with every key optional. */
function overrides<Shape extends z.ZodRawShape>(shape: Shape) {
  const optional = Object.entries(shape).map(([key, type]) => [key, z.exactOptional(type)]);
  return section(Object.fromEntries(optional) as { [K in keyof Shape]: z.ZodExactOptional<Shape[K]> });
}

const DAY_MS = 24 * 60 * 60 * 1000;
const durationMs = z.int().min(1).max(DAY_MS);
export const MAX_TOKENS = 100_000_000;
const tokens = z.int().min(1).max(MAX_TOKENS);
const usd = z.number().min(0).max(100_000);
const listen = z.string();
const unlimited = z.literal("unlimited");
const limit = z.union([z.int().min(1).max(1_000_000_000), unlimited], {
  error: 'must be a whole number from 1 to 1000000000, or "unlimited"',
});

const settleMs = z.int().min(0).max(60_000);

const timeouts = {
  connect_ms: durationMs,
  first_content_ms: durationMs,
  idle_ms: durationMs,
  total_ms: durationMs,
  settle_ms: settleMs,
};

const waitMs = z.int().min(0).max(60_000);

const capabilities = {
  sampling: z.boolean(),
  temperature_with_top_p: z.boolean(),
  max_temperature: z.number().min(0).max(2),
  penalties: z.boolean(),
  seed: z.boolean(),
  logprobs: z.boolean(),
  multiple_choices: z.boolean(),
  reasoning: z.enum(["none", "budget", "adaptive", "level"]),
  reasoning_by_default: z.boolean(),
  reasoning_can_be_disabled: z.boolean(),
  reasoning_efforts: z.array(z.enum(["minimal", "low", "medium", "high", "xhigh", "max"])),
  reasoning_budget: z.tuple([z.int().min(0), z.int().min(0)]),
  preserved_reasoning: z.boolean(),
  tools: z.boolean(),
  forced_tools: z.boolean(),
  json_schema: z.boolean(),
  prefill: z.boolean(),
  mid_conversation_system: z.boolean(),
  image_urls: z.boolean(),
  image_options: z.boolean(),
  embedding_dimensions: z.boolean(),
  max_tokens_field: z.enum(["max_tokens", "max_completion_tokens"]),
  content_parts: z.boolean(),
  stream_usage: z.boolean(),
  cache_points: z.boolean(),
  stream_above: z.int().min(0),
};

const inputModalities = z.array(z.enum(["text", "image", "audio", "file", "video"])).min(1);
const outputModalities = z.array(z.enum(["text", "image", "audio", "embedding"])).min(1);

/** Prices in US dollars per million tokens, beside those of the prompt. */
const otherTokenPrices = {
  output: z.exactOptional(usd),
  cached_input: z.exactOptional(usd),
  cache_write: z.exactOptional(usd),
  cache_write_1h: z.exactOptional(usd),
  audio_input: z.exactOptional(usd),
  image_input: z.exactOptional(usd),
  cached_audio_input: z.exactOptional(usd),
  cached_image_input: z.exactOptional(usd),
  audio_output: z.exactOptional(usd),
  image_output: z.exactOptional(usd),
};

/** In US dollars for a thousand. */
export const FEES = {
  request: z.exactOptional(usd),
  searched_request: z.exactOptional(usd),
  web_search: z.exactOptional(usd),
  file_search: z.exactOptional(usd),
  code_execution: z.exactOptional(usd),
};

/** More of one kind in a request are not usual. */
const uses = z.int().min(1).max(10_000);

/** Providers have one or two. */
const MAX_PRICE_TIERS = 8;

/** Targets of one name. */
const MAX_TARGETS = 64;
/** Models that serve in place of one that makes embeddings. */
const MAX_INTERCHANGEABLE = 8;
/** Tags of one condition. */
const MAX_KEY_TAGS = 64;

const target = section({
  model: modelId,
  weight: z.exactOptional(z.number().min(0.001).max(1_000_000)),
  when: z.exactOptional(
    overrides({
      prompt_tokens: overrides({ min: z.int().min(0), max: tokens }),
      modalities: z.array(z.enum(["image", "audio", "file", "video"])).min(1),
      tools: z.boolean(),
      key_tags: z.array(labelValue).min(1).max(MAX_KEY_TAGS),
    }),
  ),
});

const hedge = section({
  after: hedgeAfter,
  budget: z.number().min(0.001).max(0.5).default(0.05),
});
const labels = overrides({ region: labelValue, retention: labelValue });

const model = overrides({
  targets: z.array(target).min(1).max(MAX_TARGETS),
  policy: z.enum(["ordered", "weighted", "least_latency", "cheapest"]),
  affinity: z.boolean(),
  hedge,
  interchangeable: z.array(modelId).min(1).max(MAX_INTERCHANGEABLE),
  provider: providerName,
  upstream_model: z.string().min(1).max(256),
  description: z.string().max(1000),
  created: isoDate,
  context_window: tokens,
  max_output_tokens: tokens,
  default_max_tokens: tokens,
  max_tokens_per_second: z.int().min(1).max(1_000_000),
  modalities: section({ input: inputModalities, output: outputModalities }),
  stage: z.enum(["preview", "stable", "deprecated"]),
  shutdown: isoDate,
  price: section({
    input: z.exactOptional(usd),
    ...otherTokenPrices,
    ...FEES,
    tiers: z.exactOptional(z.array(section({ above: tokens, input: usd, ...otherTokenPrices })).max(MAX_PRICE_TIERS)),
  }),
  max_tool_uses: overrides({ web_search: uses, file_search: uses, code_execution: uses }),
  timeouts: overrides(timeouts),
  capabilities: overrides(capabilities),
  labels,
});

/** Parley as the client of a connection. */
const clientTls = {
  ca_file: z.exactOptional(absolutePath),
  cert_file: z.exactOptional(absolutePath),
  key_file: z.exactOptional(absolutePath),
};

const provider = section({
  preset: z.exactOptional(z.enum(PRESET_NAMES)),
  dialect: z.exactOptional(z.enum(DIALECTS)),
  host: z.exactOptional(z.enum(HOSTS)),
  region: z.exactOptional(region),
  project: z.exactOptional(project),
  api_version: z.exactOptional(apiVersion),
  credential_file: z.exactOptional(absolutePath),
  base_url: z.exactOptional(z.string().max(2_048)),
  api_keys: z.array(credential).default([]),
  account_credentials: z.enum(["none", "allowed"]).default("none"),
  allow_private: z.boolean().default(false),
  trace_context: z.boolean().default(false),
  headers: z.record(headerName, headerValue).default({}),
  connections: section({
    max: z.int().min(1).max(1_000_000).default(4_096),
    max_age_ms: durationMs.default(300_000),
    max_requests: z.int().min(1).max(1_000_000).default(1_000),
    per_account: z.boolean().default(false),
    http2: z.boolean().default(false),
  }).prefault({}),
  health: section({
    check: z.enum(["none", "completion"]).default("none"),
    interval_ms: z.int().min(5_000).max(3_600_000).default(60_000),
  }).prefault({}),
  options: z.exactOptional(z.array(z.enum(PROVIDER_OPTIONS))),
  labels: labels.prefault({}),
  proxy: z.exactOptional(proxy),
  address: z.exactOptional(ipAddress),
  tls: section(clientTls).prefault({}),
  timeouts: overrides(timeouts).prefault({}),
});

const listenerTls = section({
  cert_file: absolutePath,
  key_file: absolutePath,
  client_ca_file: z.exactOptional(absolutePath),
  client_crl_file: z.exactOptional(absolutePath),
  client_certificates: z.exactOptional(z.enum(["required", "optional"])),
});

/** Certificates that stand for keys, and bindings of an issuer's tokens. */
const MAX_BINDINGS = 10_000;
const MAX_ISSUERS = 32;
const MAX_FRONTS = 1_000;

const issuer = section({
  issuer: z.string().min(1).max(1024),
  audience: z.string().min(1).max(1024),
  keys_url: z.exactOptional(httpsUrl),
  keys_ca_file: z.exactOptional(absolutePath),
  keys_file: z.exactOptional(absolutePath),
  algorithms: z
    .array(z.enum(["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]))
    .min(1)
    .default(["RS256", "ES256"]),
  clock_skew_seconds: z.int().min(0).max(300).default(30),
  bindings: z
    .array(
      section({
        claims: z
          .record(z.string().max(1024), z.union([z.string().max(4096), z.number(), z.boolean()]))
          .refine((claims) => Object.keys(claims).length > 0, "must have at least one claim, such as sub"),
        key: keyId,
      }),
    )
    .min(1)
    .max(MAX_BINDINGS),
});

/** Roles that groups of an OpenID provider may have: these, and custom ones by their ID. */
const role = z.union(
  [
    z.enum(["owner", "administrator", "developer", "viewer"]),
    z.templateLiteral(["role_", z.string().regex(/^[0-9A-Za-z]{1,32}$/)]),
  ],
  { error: "must be one of owner, administrator, developer, viewer, or the ID of a custom role (role_…)" },
);

const oidc = section({
  issuer: oidcIssuer,
  client_id: z.string().min(1).max(256),
  client_secret: credential,
  name: z.string().trim().min(1).max(40).default("single sign-on"),
  scopes: z
    .array(scope)
    .max(50)
    .refine((scopes) => scopes.includes("openid"), 'must have "openid"')
    .default(["openid", "email", "profile"]),
  groups_claim: z.string().min(1).max(256).default("groups"),
  roles: z.record(z.string().min(1).max(256), role).default({}),
  default_role: z.union([role, z.literal("none")]).default("developer"),
  domains: z.array(mailDomain).max(1_000).default([]),
  auth_time: z.enum(["required", "optional"]).default("required"),
});

/** A configuration file, before defaults that depend on other settings. */
export const fileSchema = section({
  http: section({
    listen: listen.default("127.0.0.1:8080"),
    allow_public: z.boolean().default(false),
    cors_origins: z.array(origin).default([]),
    public_url: z.exactOptional(publicUrl),
    trusted_proxies: z.array(network).default([]),
    grpc: z.boolean().default(false),
    tls: z.exactOptional(listenerTls),
  }).prefault({}),
  grpc: section({
    listen: listen.default("127.0.0.1:50051"),
    allow_public: z.boolean().default(false),
    max_receive_mib: z.number().positive().max(1024).default(33),
    max_send_mib: z.number().positive().max(1024).default(64),
    max_connection_age_ms: z.int().min(1_000).max(DAY_MS).default(3_600_000),
    tls: z.exactOptional(listenerTls),
  }).prefault({}),
  operations: section({
    listen: listen.default("127.0.0.1:9464"),
    allow_public: z.boolean().default(false),
    tls: z.exactOptional(listenerTls),
  }).prefault({}),
  access: section({
    certificates: z
      .array(section({ name: certificateName, key: keyId }))
      .max(MAX_BINDINGS)
      .default([]),
    fronts: z.array(certificateName).max(MAX_FRONTS).default([]),
    issuers: z.array(issuer).max(MAX_ISSUERS).default([]),
  }).prefault({}),
  workers: z.int().min(1).max(128).default(1),
  data_dir: z.string().min(1).default("./data"),
  database: section({
    url: z.exactOptional(databaseUrl),
    listen_url: z.exactOptional(databaseListenUrl),
    read_url: z.exactOptional(databaseUrl),
    connections: z.exactOptional(z.int().min(4).max(1_000)),
  }).prefault({}),
  outage: section({
    serve_ms: z.int().min(0).max(DAY_MS).default(3_600_000),
    budget_percent: z.number().min(0).max(20).default(0),
    ...keyOf("encryption_key"),
  }).prefault({}),
  redis: section({
    url: z.exactOptional(redisUrl),
    mode: z.enum(["server", "cluster", "sentinel"]).default("server"),
    sentinel: section({
      master: z.exactOptional(z.string().regex(/^[\w.-]{1,200}$/, "must be the name in the Sentinels' configuration")),
      username: z.exactOptional(z.string().min(1)),
      password: z.exactOptional(z.string().min(1)),
    }).prefault({}),
    tls: section(clientTls).prefault({}),
  }).prefault({}),
  core: section({
    tls: z.exactOptional(section({ ...clientTls, server_name: z.exactOptional(z.string().min(1).max(253)) })),
  }).prefault({}),
  limits: section({
    requests_per_minute: limit.default(600),
    tokens_per_minute: limit.default(2_000_000),
    concurrent_requests: limit.default(64),
    monthly_budget_usd: z
      .union([usd, unlimited], { error: 'must be a number of US dollars from 0 to 100000, or "unlimited"' })
      .default("unlimited"),
    burst_seconds: z.int().min(1).max(3600).default(60),
  }).prefault({}),
  sign_up: z.enum(["open", "invited", "closed"]).default("invited"),
  sign_in: section({
    password: z.boolean().default(true),
    second_factor: z.enum(["optional", "required"]).default("optional"),
    session_hours: z.int().min(1).max(720).default(24),
    idle_minutes: z.int().min(5).max(43_200).default(120),
    oidc: z.exactOptional(oidc),
  }).prefault({}),
  ledger: section({
    retention_days: z.int().min(1).max(36_500).default(400),
    durability: z.enum(["reply", "interval"]).default("reply"),
  }).prefault({}),
  responses: section({
    store_days: z.int().min(0).max(3_650).default(0),
    ...keyOf("encryption_key"),
  }).prefault({}),
  content: section({
    store_days: z.exactOptional(z.int().min(1).max(90)),
    ...keyOf("encryption_key"),
  }).prefault({}),
  account_credentials: section({
    ...keyOf("encryption_key"),
    ...keyOf("previous_encryption_key"),
  }).prefault({}),
  stored_configuration: section({
    enabled: z.boolean().default(true),
    allow_private: z.boolean().default(false),
  }).prefault({}),
  alerts: section({
    budget_percent: z.exactOptional(z.array(z.int().min(1).max(1_000)).max(10)),
    key_expiry_days: z.exactOptional(z.number().min(0).max(365)),
    error_percent: z.exactOptional(z.number().min(0).max(100)),
    min_requests: z.exactOptional(z.int().min(1).max(1_000_000)),
    latency_factor: z.exactOptional(z.number().min(0).max(1_000)),
    spend_factor: z.exactOptional(z.number().min(0).max(1_000)),
    spend_minimum_usd: z.exactOptional(usd),
    allow_private: z.boolean().default(false),
  }).prefault({}),
  smtp: section({
    host: z.exactOptional(z.string().regex(/^[\w.:-]{1,253}$/, "must be the name or the address of a server")),
    port: z.exactOptional(z.int().min(1).max(65_535)),
    security: z.enum(["tls", "starttls", "none"]).default("starttls"),
    user: z.exactOptional(z.string().min(1).max(320)),
    password: z.exactOptional(z.string().min(1).max(1_024)),
    from: z.exactOptional(
      z
        .string()
        .regex(/^[^\r\n]{1,400}$/)
        .regex(/@/, 'must be an e-mail address, such as "Parley <parley@example.com>"'),
    ),
    ca_file: z.exactOptional(absolutePath),
  }).prefault({}),
  log: section({
    level: z.enum(["trace", "debug", "info", "warn", "error", "fatal", "silent"]).default("info"),
  }).prefault({}),
  shutdown: section({
    delay_ms: z.int().min(0).max(600_000).default(0),
    drain_ms: z.int().min(0).max(DAY_MS).default(600_000),
  }).prefault({}),
  simulator: section({
    enabled: z.exactOptional(z.boolean()),
    tokens_per_second: z.number().positive().max(1_000_000).default(80),
    first_token_ms: z.int().min(0).max(600_000).default(250),
  }).prefault({}),
  timeouts: section({
    connect_ms: durationMs.default(5_000),
    first_content_ms: durationMs.default(60_000),
    idle_ms: durationMs.default(120_000),
    total_ms: durationMs.default(900_000),
    settle_ms: settleMs.default(2_000),
  }).prefault({}),
  retries: section({ base_ms: waitMs.default(100), cap_ms: waitMs.default(2_000) }).prefault({}),
  breaker: section({
    failures: z.int().min(1).max(1000).default(5),
    open_ms: durationMs.default(5_000),
    max_open_ms: durationMs.default(30_000),
  }).prefault({}),
  metrics: section({
    keys: z.int().min(0).max(1_000).default(0),
    tags: z.int().min(0).max(1_000).default(0),
  }).prefault({}),
  tracing: section({ slow_ms: durationMs.default(60_000), url: z.exactOptional(traceUrl) }).prefault({}),
  overload: section({
    max_calls: z.int().min(1).max(1_000_000).default(20_000),
    max_wait_ms: z.int().min(1).max(60_000).default(10_000),
    max_connections: z.exactOptional(z.int().min(1).max(1_000_000)),
    max_connections_per_address: z.exactOptional(z.int().min(1).max(1_000_000)),
  }).prefault({}),
  providers: z.record(providerName, provider).default({}),
  models: z.record(modelId, model).default({}),
  aliases: z.record(modelAlias, modelId).default({}),
});

export type FileInput = z.output<typeof fileSchema>;
export type ProviderInput = z.output<typeof provider>;
export type ConnectionsInput = ProviderInput["connections"];
export type HedgeInput = z.output<typeof hedge>;
export type ClientTlsInput = FileInput["redis"]["tls"];
export type IssuerInput = z.output<typeof issuer>;
export type TargetInput = z.output<typeof target>;
export type ModelInput = z.output<typeof model>;
export type TimeoutsInput = { [K in keyof typeof timeouts]: z.output<(typeof timeouts)[K]> };
export type CapabilitiesInput = { [K in keyof typeof capabilities]: z.output<(typeof capabilities)[K]> };
