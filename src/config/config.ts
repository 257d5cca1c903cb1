import type { Dialect, ProviderOption } from "./dialects.ts";
import type { CapabilitiesInput, ConnectionsInput, TimeoutsInput } from "./schema.ts";

/** Where a listener binds. `host` is without brackets; port 0 lets the system choose. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** The limits of one attempt (`totalMs`: of all attempts of one completion together), in milliseconds. */
export type Timeouts = Readonly<CamelKeys<TimeoutsInput>>;

/** What an upstream model can do; has the shape of core's type of the same name. */
export type Capabilities = Readonly<CamelKeys<CapabilitiesInput>>;

export type Modality = "text" | "image" | "audio";

export type LogLevel = "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "silent";

/** In micro-USD per million tokens, as integers: 5 USD per million tokens is 5,000,000. */
export interface Price {
  readonly input: number;
  readonly output: number;
  /** Input that the provider had in its prompt cache. */
  readonly cachedInput: number;
  /** Input that is written to a prompt cache, for minutes and for an hour. */
  readonly cacheWrite: number;
  readonly cacheWriteHour: number;
  /** Speech, in the prompt and in the answer. */
  readonly audioInput: number;
  readonly audioOutput: number;
  /** Tokens of pictures in the answer. */
  readonly image: number;
}

interface ProviderBase {
  readonly name: string;
  readonly dialect: Dialect;
}

/** A provider without credentials: the built-in simulator answers in its place. */
export interface SimulatedProvider extends ProviderBase {
  readonly simulated: true;
}

/** A provider that is really called. */
export interface RemoteProvider extends ProviderBase {
  readonly simulated: false;
  /** Without a trailing slash. */
  readonly baseUrl: string;
  /** Secrets. May be empty where the service wants none. */
  readonly apiKeys: readonly string[];
  /** May be a private or loopback address, and plain HTTP. */
  readonly allowPrivate: boolean;
  /** Sent with every request; names in lower case. The values may be secrets. */
  readonly headers: Readonly<Record<string, string>>;
  /** In each process: connections open at once, how long and how often one is used, and whether accounts share them. */
  readonly connections: Readonly<CamelKeys<ConnectionsInput>>;
  /** What requests may ask of it beside tokens; undefined: everything. */
  readonly options: readonly ProviderOption[] | undefined;
}

export type ProviderConfig = SimulatedProvider | RemoteProvider;

/** A model as clients see it, and what stands behind it. */
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
  readonly maxOutputTokens: number;
  /** What is sent when a request has no `max_tokens` and the dialect needs one. */
  readonly defaultMaxTokens: number;
  /** The model's fastest rate for one choice. */
  readonly maxTokensPerSecond: number;
  readonly modalities: { readonly input: readonly Modality[]; readonly output: readonly Modality[] };
  readonly preview: boolean;
  /** Undefined when nobody said: then what it costs is unknown, and not shown as nothing. */
  readonly price: Price | undefined;
  /** Those of the model over those of its provider over the general ones. */
  readonly timeouts: Timeouts;
  readonly capabilities: Capabilities;
}

/** How much an account may use that has no limits of its own; has the shape of core's type of the same name. */
export interface Limits {
  readonly requestsPerMinute: number | undefined;
  readonly tokensPerMinute: number | undefined;
  readonly concurrentRequests: number | undefined;
  readonly monthlyBudgetMicroUsd: number | undefined;
}

/** Who may make an account: everybody, those with an invitation, or nobody. The first person may unless it is nobody. */
export type SignUp = "open" | "invited" | "closed";

/** Everything that can be configured, checked, complete and frozen. */
export interface Config {
  /** The file it came from; undefined when there was none. */
  readonly file: string | undefined;
  /** Whether secrets are written in the file itself, and not as `${NAME}`. */
  readonly secretsInFile: boolean;
  readonly http: {
    readonly listen: ListenAddress;
    readonly corsOrigins: readonly string[];
    /** Whether others than this machine may connect, by the operator's own word. */
    readonly allowPublic: boolean;
    /** The origin under which people reach the dashboard; undefined for the address that is listened on. */
    readonly publicUrl: string | undefined;
    /** Networks whose `x-forwarded-for` is believed. */
    readonly trustedProxies: readonly string[];
  };
  readonly grpc: {
    readonly listen: ListenAddress;
    readonly maxReceiveBytes: number;
    readonly maxSendBytes: number;
    /** After which a connection is told to go, give or take a tenth; its calls finish. */
    readonly maxConnectionAgeMs: number;
  };
  readonly operations: { readonly listen: ListenAddress };
  /** How many processes serve behind the same addresses: 1 to 128. */
  readonly workers: number;
  /** Absolute path. */
  readonly dataDir: string;
  /** PostgreSQL's address, a secret; undefined for SQLite in the data directory. */
  readonly databaseUrl: string | undefined;
  /** Redis' address, a secret; undefined when rates are kept in the database or in this process. */
  readonly redisUrl: string | undefined;
  readonly limits: { readonly account: Limits; readonly burstMs: number };
  readonly signUp: SignUp;
  readonly ledger: { readonly retentionMs: number };
  readonly log: { readonly level: LogLevel };
  readonly shutdown: { readonly delayMs: number; readonly drainMs: number };
  readonly simulator: { readonly tokensPerSecond: number; readonly firstTokenMs: number };
  readonly timeouts: Timeouts;
  /** A retry waits a random time up to `baseMs`, doubled for each further one, up to `capMs`. */
  readonly retries: { readonly baseMs: number; readonly capMs: number };
  /** So many failures in a row let an upstream model rest: first for `openMs`, doubled up to `maxOpenMs`. */
  readonly breaker: { readonly failures: number; readonly openMs: number; readonly maxOpenMs: number };
  /** When new completions wait or are refused, in each process: calls under way, how long one may wait. */
  readonly overload: {
    readonly maxCalls: number;
    readonly maxWaitMs: number;
    /** Undefined for what the limit of descriptors allows, and for half of that. */
    readonly maxConnections?: number;
    readonly maxConnectionsPerAddress?: number;
  };
  readonly providers: readonly ProviderConfig[];
  readonly models: readonly ModelConfig[];
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
