import type { Dialect, ProviderOption } from "./dialects.ts";
import type { KeySource } from "./encryption-keys.ts";
import type { Host } from "./hosts.ts";
import type { CapabilitiesInput, ConnectionsInput, TimeoutsInput } from "./schema.ts";
import type { MetricExportConfig } from "./metrics.ts";
import type { LeftOut } from "./stored.ts";
import type { TraceExportConfig } from "./tracing.ts";

/** Where a listener binds. `host` is without brackets; port 0 lets the system choose. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** TLS of a listener; undefined for plain TCP. */
export interface ListenerTls {
  /** Absolute paths of files in PEM: the certificate with its intermediates, its private key, authorities for clients. */
  readonly certFile: string;
  readonly keyFile: string;
  readonly clientCaFile: string | undefined;
  /** Revocation lists of these authorities, one of each; undefined: revocation is not checked. */
  readonly clientCrlFile: string | undefined;
  /** With authorities: whether each client needs a certificate. */
  readonly clientCertificates: "required" | "optional";
}

/** Absolute paths of files in PEM for connections to a server. */
export interface ClientTls {
  /** Authorities that the server's certificate is verified by; undefined: those of Node. */
  readonly caFile?: string;
  /** The own certificate and its private key; undefined: none. */
  readonly certFile?: string;
  readonly keyFile?: string;
}

/** Redis or Valkey, for rates; `place` has the fields of limits' type `RedisPlace`. */
export interface RedisConfig {
  /** A secret. Several hosts are nodes of a cluster, or Sentinels. */
  readonly url: string;
  readonly place:
    | { readonly mode: "server" | "cluster" }
    | {
        readonly mode: "sentinel";
        readonly master: string;
        readonly username: string | undefined;
        /** A secret. */
        readonly password: string | undefined;
      };
  /** For a `rediss:` address. */
  readonly tls: ClientTls;
}

/** An issuer of JSON Web Tokens that stand for keys; has the fields of access' type `TokenIssuer`. */
export interface TokenIssuerConfig {
  readonly issuer: string;
  readonly audience: string;
  readonly algorithms: readonly string[];
  readonly clockSkewMs: number;
  readonly bindings: readonly {
    readonly claims: Readonly<Record<string, string | number | boolean>>;
    readonly key: string;
  }[];
  /** Source of its public keys. `caFile`: authorities for the address; undefined: those of Node. */
  readonly keySet: { readonly file: string } | { readonly url: string; readonly caFile: string | undefined };
}

/** Limits of one attempt in milliseconds; `totalMs` is for all attempts of one completion together. */
type Timeouts = Readonly<CamelKeys<TimeoutsInput>>;

/** Capabilities of an upstream model; has the shape of core's type of the same name. */
type Capabilities = Readonly<CamelKeys<CapabilitiesInput>>;

type Modality = "text" | "image" | "audio" | "file" | "video" | "embedding";

/** Labels that keys and requests can require; has the shape of core's type of the same name. */
type Labels = { readonly region?: string; readonly retention?: string };

type LogLevel = "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "silent";

/** Prices in micro-USD per million tokens, as integers: 5 USD per million tokens is 5,000,000. */
export interface TokenPrices {
  readonly input: number;
  readonly output: number;
  /** Input that was read from the provider's prompt cache. */
  readonly cachedInput: number;
  /** Input that is written to a prompt cache, for minutes and for an hour. */
  readonly cacheWrite: number;
  readonly cacheWriteHour: number;
  /** Audio and images in the prompt, also read from the provider's prompt cache, and in the answer. */
  readonly audioInput: number;
  readonly imageInput: number;
  readonly cachedAudioInput: number;
  readonly cachedImageInput: number;
  readonly audioOutput: number;
  readonly imageOutput: number;
}

/** Fees beside the prices of tokens, in micro-USD for a million; undefined: not known. Has the shape of core's type of the same name. */
export interface Fees {
  readonly requests: number;
  readonly searchedRequests: number;
  readonly webSearches: number | undefined;
  readonly fileSearches: number | undefined;
  readonly codeExecutions: number | undefined;
}

/** Prices of a completion whose prompt has more than `abovePromptTokens`. */
interface PriceTier extends TokenPrices {
  readonly abovePromptTokens: number;
}

/** Prices of a model. */
export interface Price extends TokenPrices {
  /** The shortest prompts first. */
  readonly tiers: readonly PriceTier[];
  readonly fees: Fees;
}

interface ProviderBase {
  readonly name: string;
  readonly dialect: Dialect;
}

/** A provider without credentials: the built-in simulator answers in its place. */
interface SimulatedProvider extends ProviderBase {
  readonly simulated: true;
}

/** A real provider. */
export interface RemoteProvider extends ProviderBase {
  readonly simulated: false;
  /** The cloud that it is at; undefined for a service that speaks the dialect as its maker does. */
  readonly host?: Host | undefined;
  /** Without a trailing slash. */
  readonly baseUrl: string;
  /** Secrets. May be empty where the service needs none. */
  readonly apiKeys: readonly string[];
  /** Why a stored credential cannot be used, so that requests fail; undefined for other providers. */
  readonly lack?: "missing" | "unreadable" | "other address" | undefined;
  /** Whether accounts may have credentials of their own for it. */
  readonly takesAccountCredentials: boolean;
  /** Allows a private or loopback address, and plain HTTP. */
  readonly allowPrivate: boolean;
  /** Whether it is of the stored configuration, whose addresses are looked up and checked also behind a proxy. Default: no. */
  readonly isStored?: boolean;
  /** Whether it gets the `traceparent` and `tracestate` of traced calls. */
  readonly sendsTraceContext: boolean;
  /** Sent with every request; names in lower case. The values may be secrets. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Per process: limit of open connections, age and number of requests of one connection, and whether accounts share them.
   */
  readonly connections: Readonly<CamelKeys<ConnectionsInput>>;
  /** Time without a call after which a model is tested by a request for one token; undefined: never. */
  readonly checkedMs: number | undefined;
  /** Provider options that requests may use (`PROVIDER_OPTIONS`); undefined: all. */
  readonly options: readonly ProviderOption[] | undefined;
  readonly egress: {
    /** Address of an HTTP proxy, a secret; undefined for none. */
    readonly proxy: string | undefined;
    /** IP address that is connected to in place of the host's. */
    readonly address: string | undefined;
    readonly tls: ClientTls;
  };
}

export type ProviderConfig = SimulatedProvider | RemoteProvider;

/** A model as clients see it, with its provider and upstream model. */
export interface ModelConfig {
  readonly id: string;
  /** The name of an entry of `Config.providers`. */
  readonly provider: string;
  /** The provider's own name of the model. */
  readonly upstreamModel: string;
  readonly description: string;
  /** Unix seconds. */
  readonly created: number;
  /** Tokens of prompt and answer together. */
  readonly contextWindow: number;
  /** 0 for a model that makes embeddings. */
  readonly maxOutputTokens: number;
  /** `max_tokens` of the upstream request when the caller sets none and the dialect needs one. */
  readonly defaultMaxTokens: number;
  /** The model's fastest rate for one choice. */
  readonly maxTokensPerSecond: number;
  /** Whether its provider generates on after the connection of a stream is closed. */
  readonly billsClosedStreams: boolean;
  /** Whether its provider reads documents with a tool of its own, for a fee. */
  readonly billsDocuments: boolean;
  /** Whether the usage of its provider's answers has what these cost. */
  readonly statesCost: boolean;
  readonly modalities: { readonly input: readonly Modality[]; readonly output: readonly Modality[] };
  readonly stage: "preview" | "stable" | "deprecated";
  /** Unix seconds of its end; undefined when it is not known. */
  readonly shutdown: number | undefined;
  /**
   * Where facts are from: the file or Parley's own models, the provider's list, the list of known models, or an assumption. Of a price with only fees in the
   * file that of its tokens; undefined without one.
   */
  readonly sources: {
    readonly contextWindow: "configured" | "provider" | "list" | "assumed";
    readonly maxOutputTokens: "configured" | "provider" | "assumed";
    readonly price: "configured" | "list" | undefined;
  };
  /** Undefined when it is not known: the cost is then unknown, and not shown as zero. */
  readonly price: Price | undefined;
  /** Most uses of the provider's tools by one request, for budgets; has the shape of core's type of the same name. */
  readonly maxToolUses: {
    readonly [Unit in Exclude<keyof Fees, "requests" | "searchedRequests">]?: number | undefined;
  };
  /** The model's timeouts, else those of its provider, else the general ones. */
  readonly timeouts: Timeouts;
  readonly capabilities: Capabilities;
  /** Undefined: none. */
  readonly hedge: Hedge | undefined;
  /** IDs of models that make the same vectors, in the order in which they serve when this one fails. */
  readonly interchangeable: readonly string[];
  /** The model's, over those of its provider. */
  readonly labels: Labels;
}

/** A provider whose list of models is imported. */
export interface ImportConfig {
  /** The name of an entry of `Config.providers`. */
  readonly provider: string;
  /** Stands before the provider's names in the IDs. */
  readonly prefix: string;
  /** Names of its list that are not imported, because another provider's list has them; at most 10. Empty without a list. */
  readonly shadowed: readonly string[];
}

/** Second attempts; has the shape of core's type of the same name. */
export interface Hedge {
  /** Milliseconds without content, or a percentile of the model's own times. */
  readonly after: { readonly ms: number } | { readonly percentile: number };
  /** Largest share of the requests that are sent twice. */
  readonly budget: number;
}

/** How a name with several models orders them; has the values of core's type of the same name. */
type RoutePolicy = "ordered" | "weighted" | "least_latency" | "cheapest";

/** One of the models behind a name. */
export interface TargetConfig {
  /** The ID of an entry of `Config.models`. */
  readonly model: string;
  /** Share relative to the other targets. */
  readonly weight: number;
  /** Which requests it is used for; undefined: all. */
  readonly when:
    | {
        /** Estimated, both ends included. */
        readonly promptTokens: { readonly min: number; readonly max: number } | undefined;
        /** The request holds, or asks for, at least one of these. */
        readonly modalities: readonly Modality[] | undefined;
        /** Whether the request has tools. */
        readonly tools: boolean | undefined;
        /** The key has at least one of these tags. */
        readonly keyTags: readonly string[] | undefined;
      }
    | undefined;
}

/** A name with several models behind it. */
export interface RouteConfig {
  readonly id: string;
  readonly description: string;
  /** Unix seconds. */
  readonly created: number;
  readonly policy: RoutePolicy;
  /** Whether conversations stay at one target. */
  readonly affinity: boolean;
  /** Undefined: none. */
  readonly hedge: Hedge | undefined;
  /** At least one. */
  readonly targets: readonly TargetConfig[];
}

/** Limits of an account that has none of its own; has the shape of core's type of the same name. */
interface Limits {
  readonly requestsPerMinute: number | undefined;
  readonly tokensPerMinute: number | undefined;
  readonly concurrentRequests: number | undefined;
  readonly monthlyBudgetMicroUsd: number | undefined;
}

/** Rule for making an account: open to all people, only with an invitation, or closed. Unless it is `closed`, the first person may. */
type SignUp = "open" | "invited" | "closed";

/** A role that groups of an OpenID provider may have, a custom one by its ID; has the values of access' type of the same name. */
type Role = "owner" | "administrator" | "developer" | "viewer" | `role_${string}`;

/** An OpenID provider, at which people sign in. */
interface OidcConfig {
  readonly issuer: string;
  readonly clientId: string;
  /** A secret, or KEY_FILE and the path of the file that has it. */
  readonly clientSecret: string;
  /** On the button of the sign-in page. */
  readonly name: string;
  readonly scopes: readonly string[];
  /** The claim with the groups of a person. */
  readonly groupsClaim: string;
  /** Roles by groups; empty: administrators give roles. */
  readonly roles: Readonly<Record<string, Role>>;
  /** Role without such a group; `none`: the sign-in is refused. */
  readonly defaultRole: Role | "none";
  /** Domains of addresses that sign in there only, and get accounts there; in lower case. */
  readonly domains: readonly string[];
  /**
   * Whether the provider must send the time of the last authentication (`auth_time`), for actions that need a fresh proof.
   */
  readonly authTime: "required" | "optional";
}

/** Everything that can be configured, checked, complete and frozen. */
export interface Config {
  /** Name of the file; undefined without a file. */
  readonly file: string | undefined;
  /** Whether secrets are written literally in the file, not as `${NAME}`. */
  readonly secretsInFile: boolean;
  readonly http: {
    readonly listen: ListenAddress;
    readonly corsOrigins: readonly string[];
    /** Whether other machines may connect, as allowed by the operator. */
    readonly allowPublic: boolean;
    /** Origin under which people reach the dashboard; undefined for the listening address. */
    readonly publicUrl: string | undefined;
    /** Networks whose `x-forwarded-for` is believed. */
    readonly trustedProxies: readonly string[];
    /** Whether gRPC is served on this port in place of `grpc.listen`, where one process serves both. */
    readonly grpc: boolean;
    readonly tls: ListenerTls | undefined;
  };
  readonly grpc: {
    readonly listen: ListenAddress;
    readonly maxReceiveBytes: number;
    readonly maxSendBytes: number;
    /** Age at which a connection gets GOAWAY, plus or minus a tenth; its calls finish. */
    readonly maxConnectionAgeMs: number;
    readonly tls: ListenerTls | undefined;
  };
  readonly operations: { readonly listen: ListenAddress; readonly tls: ListenerTls | undefined };
  /** Callers without the secret of a key. */
  readonly access: {
    /** Alternative names of certificates, with the IDs of the keys that they stand for. */
    readonly certificates: readonly { readonly name: string; readonly key: string }[];
    /** Alternative names of the certificates of fronts. */
    readonly fronts: readonly string[];
    readonly issuers: readonly TokenIssuerConfig[];
  };
  /** Number of processes that serve behind the same addresses: 1 to 128. */
  readonly workers: number;
  /** Absolute path. */
  readonly dataDir: string;
  /** PostgreSQL's address, a secret; undefined for SQLite in the data directory. */
  readonly databaseUrl: string | undefined;
  /**
   * PostgreSQL's address for LISTEN, a secret; `none` where a pooler forbids LISTEN: changed keys are then found by asking again.
   * Default: `databaseUrl`.
   */
  readonly databaseListenUrl: string | undefined;
  /** Address of a PostgreSQL read replica for reports, a secret. */
  readonly databaseReadUrl: string | undefined;
  /** Largest number of PostgreSQL connections of a process. Default: its share of the server's. */
  readonly databaseConnections: number | undefined;
  /**
   * How long a known key works while the database is unavailable, counted from the database's last answer about it; 0: only while it
   * answers. `budgetShare`: part of each budget that each process holds to spend it then. With PostgreSQL known keys are also kept in a file, encrypted with `encryptionKey`, a secret; undefined for that of the
   * data directory.
   */
  readonly outage: {
    readonly serveMs: number;
    readonly budgetShare: number;
    readonly encryptionKey: string | undefined;
  };
  /** Undefined when rates are kept in the database or in this process. */
  readonly redis: RedisConfig | undefined;
  /** TLS of a front's connections to its cores; undefined: plain TCP. `serverName`: name in their certificates. */
  readonly core: { readonly tls: (ClientTls & { readonly serverName?: string }) | undefined };
  /** Of accounts without limits of their own. */
  readonly limits: Limits;
  /** Capacity of all buckets of requests, as time. */
  readonly burstMs: number;
  readonly signUp: SignUp;
  /** Whether passwords are accepted; how long a session lives at most, and without use. */
  readonly signIn: {
    readonly password: boolean;
    /** Whether everybody who signs in with a password needs a second factor. */
    readonly secondFactor: "optional" | "required";
    readonly sessionMs: number;
    readonly idleMs: number;
    /** Undefined: none. */
    readonly oidc: OidcConfig | undefined;
  };
  /** `durability`: whether an answer ends when its entry is written, or entries are written within an interval. */
  readonly ledger: { readonly retentionMs: number; readonly durability: "reply" | "interval" };
  /** How long answers of the Responses API are kept; 0: they are not. */
  readonly responses: {
    readonly keptMs: number;
    /** Key that they are encrypted with, a secret; undefined for that of the data directory. */
    readonly encryptionKey: string | undefined;
  };
  /** How long prompts and answers of keys that store them are kept; undefined: no key may store them. */
  readonly content: {
    readonly keptMs: number | undefined;
    /** Key that they are encrypted with, a secret; undefined for that of the data directory. */
    readonly encryptionKey: string | undefined;
  };
  /**
   * Credentials in the database, of accounts and of stored providers. Secrets: the key that they are encrypted with, undefined for that
   * of the data directory, and another one by which they can be read.
   */
  readonly accountCredentials: { readonly encryptionKey?: string; readonly previousEncryptionKey?: string };
  /** Sources of the keys above that are read from a file or by a command. */
  readonly keySources: readonly KeySource[];
  /** Whether the stored configuration is used, and may name private addresses. */
  readonly storedConfiguration: { readonly enabled: boolean; readonly allowPrivate: boolean };
  /**
   * The stored configuration in force, with the entries that were left out; undefined where none was read. The version is
   * undefined when it is not known.
   */
  readonly stored: { readonly version: number | undefined; readonly leftOut: readonly LeftOut[] } | undefined;
  /** Thresholds of alerts that the file sets, and whether webhooks may have private addresses. */
  readonly alerts: { readonly thresholds: AlertThresholds; readonly allowPrivate: boolean };
  /** The server for e-mail; undefined: none is sent. */
  readonly smtp: SmtpConfig | undefined;
  readonly log: { readonly level: LogLevel };
  readonly shutdown: { readonly delayMs: number; readonly drainMs: number };
  readonly simulator: { readonly tokensPerSecond: number; readonly firstTokenMs: number };
  readonly timeouts: Timeouts;
  /** A retry waits a random time up to `baseMs`, doubled for each further one, up to `capMs`. */
  readonly retries: { readonly baseMs: number; readonly capMs: number };
  /** `failures` in a row open the circuit breaker of an upstream model: first for `openMs`, doubled up to `maxOpenMs`. */
  readonly breaker: { readonly failures: number; readonly openMs: number; readonly maxOpenMs: number };
  /** Limits per process for admission: calls in flight, waiting time, connections. */
  readonly overload: {
    readonly maxCalls: number;
    readonly maxWaitMs: number;
    /** Undefined: computed from the descriptor limit, and half of that per address. */
    readonly maxConnections?: number;
    readonly maxConnectionsPerAddress?: number;
  };
  /**
   * How many keys and tags have metrics of their own in a process, the others being `other`; 0: there are none by key or tag. `export`
   * is undefined: metrics are for Prometheus only.
   */
  readonly metrics: {
    readonly keys: number;
    readonly tags: number;
    readonly export: MetricExportConfig | undefined;
  };
  /** Traces, and from which duration on a call is exported whatever the sampler decided. `export` is undefined: nothing is traced. */
  readonly tracing: {
    readonly slowMs: number;
    /** Address of a trace, with `{trace_id}` in place of its ID. Default: the dashboard has no links to traces. */
    readonly url?: string;
    readonly export: TraceExportConfig | undefined;
  };
  readonly providers: readonly ProviderConfig[];
  readonly models: readonly ModelConfig[];
  /** Names with several models behind them; none is the ID of a model. */
  readonly routes: readonly RouteConfig[];
  /** Providers whose lists of models are imported; their models are among `models` when the lists are known. */
  readonly imports: readonly ImportConfig[];
  /** IDs of models and routes by other names, in the order in which they are tried. A name that ends with `*` is the beginning of names. */
  readonly aliases: ReadonlyArray<readonly [name: string, model: string]>;
}

/** Thresholds of alerts. Absent: that of the dashboard, or the default. 0, and an empty list: the rule is off. */
interface AlertThresholds {
  readonly budgetPercent?: readonly number[];
  readonly keyExpiryDays?: number;
  readonly errorPercent?: number;
  readonly minRequests?: number;
  readonly latencyFactor?: number;
  readonly spendFactor?: number;
  readonly spendMinimumUsd?: number;
}

/** A server for e-mail. */
interface SmtpConfig {
  readonly host: string;
  readonly port: number;
  /** `tls`: from the first byte; `starttls`: before anything else; `none`: unencrypted. */
  readonly security: "tls" | "starttls" | "none";
  readonly user: string | undefined;
  /** A secret. */
  readonly password: string | undefined;
  readonly from: string;
  readonly caFile: string | undefined;
}

type Camel<S extends string> = S extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : S;

/** An object type with its snake_case keys in camelCase; values stay as they are. */
type CamelKeys<T> = { [K in keyof T as K extends string ? Camel<K> : never]: T[K] };

/** The object with its own snake_case keys in camelCase. Does not look into values. */
export function camelKeys<T extends object>(snake: T): CamelKeys<T> {
  const entries = Object.entries(snake).map(([key, value]: [string, unknown]) => [
    key.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase()),
    value,
  ]);
  return Object.fromEntries(entries) as CamelKeys<T>;
}
