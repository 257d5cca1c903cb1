import { privateReason } from "./addresses.ts";
import { camelKeys } from "./camel-keys.ts";
import type { ProviderConfig } from "./config.ts";
import type { Report } from "./config-error.ts";
import { DIALECT_DEFAULTS, DIALECTS } from "./dialects.ts";
import { BUILT_IN_PROVIDERS } from "./models.ts";
import { sampleProblem } from "./scalars.ts";
import type { FileInput, ProviderInput } from "./schema.ts";

/**
 * The configured providers. Those of the built-in models that are not configured are simulated when nothing at all is
 * configured, or when the file asks for it: made-up answers must not stand in for a provider that somebody forgot.
 */
export function resolveProviders(input: FileInput, report: Report): ProviderConfig[] {
  const configured = Object.keys(input.providers);
  const simulate = input.simulator.enabled ?? configured.length === 0;
  const names = new Set([...(simulate ? Object.keys(BUILT_IN_PROVIDERS) : []), ...configured]);
  const providers: ProviderConfig[] = [];
  for (const name of names) {
    const entry = input.providers[name];
    // A file's provider may be called "constructor", which every object has.
    const builtIn = Object.hasOwn(BUILT_IN_PROVIDERS, name) ? BUILT_IN_PROVIDERS[name] : undefined;
    const dialect = entry?.dialect ?? builtIn;
    if (dialect === undefined) {
      report(["providers", name, "dialect"], `is required: one of ${DIALECTS.join(", ")}`);
    } else if (entry === undefined) {
      providers.push({ name, dialect, simulated: true });
    } else {
      providers.push(resolveRemote({ name, dialect, simulated: false }, entry, report));
    }
  }
  return providers;
}

function resolveRemote(
  base: Pick<Extract<ProviderConfig, { simulated: false }>, "name" | "dialect" | "simulated">,
  entry: ProviderInput,
  report: Report,
): ProviderConfig {
  const defaults = DIALECT_DEFAULTS[base.dialect];
  const path = ["providers", base.name];
  const headers = Object.entries(entry.headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  if (defaults.needsCredential && entry.api_keys.length === 0 && headers.length === 0) {
    report([...path, "api_keys"], `is required for the dialect ${base.dialect}, such as ["\${${envName(base.name)}}"]`);
  }
  for (const name of Object.keys(entry.headers)) {
    const problem = credentialHeaderProblem(name.toLowerCase(), defaults.credentialHeader, entry);
    if (problem !== undefined) report([...path, "headers", name], problem);
  }
  // A server of one's own may be content with any word.
  const samples = entry.allow_private ? [] : entry.api_keys;
  samples.forEach((key, index) => {
    const weakness = sampleProblem(key);
    if (weakness !== undefined) report([...path, "api_keys", index], weakness);
  });
  const baseUrl = entry.base_url ?? defaults.baseUrl;
  const problem = baseUrlProblem(baseUrl, entry.allow_private);
  if (problem !== undefined) report([...path, "base_url"], problem);
  return {
    ...base,
    baseUrl: baseUrl.replace(/\/+$/, ""),
    apiKeys: entry.api_keys,
    allowPrivate: entry.allow_private,
    headers: Object.fromEntries(headers),
    connections: camelKeys(entry.connections),
    options: entry.options,
  };
}

/** Why this header must not carry a credential; undefined when it may, for a service with another kind of credential. */
function credentialHeaderProblem(name: string, credentialHeader: string, { api_keys }: ProviderInput) {
  if (name === credentialHeader) return "this header carries the credential; write that in api_keys";
  if (name === "authorization" && api_keys.length > 0) return "this is a second credential beside api_keys; remove one";
  return undefined;
}

function baseUrlProblem(text: string, allowPrivate: boolean): string | undefined {
  const url = URL.parse(text);
  if (url === null || !/^https?:\/\//i.test(text) || /\s/.test(text)) return 'must be an address, such as "https://…"';
  if (url.username !== "" || url.password !== "") return "must not contain a user or password; use api_keys or headers";
  if (url.search !== "" || url.hash !== "") return "must end before any ? or #";
  const reason = allowPrivate ? undefined : privateReason(url);
  if (reason === undefined) return undefined;
  return `this is ${reason}; if it is meant, write allow_private: true beside it in a file`;
}

function envName(provider: string): string {
  return `${provider.toUpperCase().replaceAll("-", "_")}_API_KEY`;
}
