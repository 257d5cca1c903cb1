import { nearest } from "../encoding/nearest.ts";
import { isMetadata, privateReason } from "./addresses.ts";
import type { ConfigPath, Report } from "./config-error.ts";
import { camelKeys, type ProviderConfig, type RemoteProvider } from "./config.ts";
import { DIALECT_DEFAULTS, DIALECTS } from "./dialects.ts";
import type { Environment } from "./environment.ts";
import { addressOf, keyHeaderOf, resolveHost } from "./hosts.ts";
import { BUILT_IN_PROVIDERS } from "./models.ts";
import { type Preset, PRESETS } from "./presets.ts";
import { isWithoutProxy, proxyVariable } from "./proxies.ts";
import { KEY_FILE, NO_PROXY, sampleProblem } from "./scalars.ts";
import type { ClientTlsInput, FileInput, ProviderInput } from "./schema.ts";
import type { StoredCredential } from "./stored.ts";

/** Says that there is no provider of this name, and which there are. */
export function unknownProvider(name: string, providers: readonly ProviderConfig[]): string {
  const names = providers.map((provider) => provider.name);
  if (names.length === 0) return "there is no such provider; none is configured";
  const meant = nearest(name, names);
  return `there is no such provider; ${meant === undefined ? `there are: ${names.join(", ")}` : `did you mean ${meant}?`}`;
}

/** What the providers depend on beside their entries. */
export interface ProviderFacts {
  readonly env: Environment;
  /** Credentials of the stored providers that are in force, by name. */
  readonly storedProviders: ReadonlyMap<string, StoredCredential | undefined>;
  /** Whether the built-in providers are simulated when no provider is configured. */
  readonly simulatesByDefault: boolean;
}

/**
 * Returns the configured providers. Unconfigured providers of the built-in models are simulated when no provider is
 * configured or when `simulator.enabled` is true: simulated answers must not replace a provider whose configuration was
 * forgotten, or whose stored entry is missing.
 */
export function resolveProviders(
  input: FileInput,
  { simulatesByDefault, ...facts }: ProviderFacts,
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
  }: Pick<RemoteProvider, "name" | "dialect" | "simulated"> & Omit<ProviderFacts, "simulatesByDefault">,
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
export function requirePair(tls: ClientTlsInput, path: ConfigPath, report: Report): void {
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
