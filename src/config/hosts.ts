import type { ConfigPath, Report } from "./config-error.ts";
import { DIALECT_DEFAULTS, type Dialect } from "./dialects.ts";
import type { ProviderInput } from "./schema.ts";

/** Clouds that serve the models of others under addresses, and with credentials, of their own. */
export const HOSTS = ["azure", "bedrock", "vertex"] as const;

export type HostKind = (typeof HOSTS)[number];

/** The cloud that a provider is at, with what its addresses need. */
export type Host =
  /** `apiVersion`: of the addresses of deployments; undefined for the v1 API. */
  | { readonly kind: "azure"; readonly apiVersion: string | undefined }
  | { readonly kind: "bedrock"; readonly region: string }
  /** `credentialFile`: a service account's; undefined for Google's application default credentials. */
  | {
      readonly kind: "vertex";
      readonly project: string;
      readonly region: string;
      readonly credentialFile: string | undefined;
    };

/** Dialects by host. */
const DIALECTS_OF: Readonly<Record<HostKind, readonly Dialect[]>> = {
  azure: ["openai", "openai-responses"],
  bedrock: ["anthropic", "bedrock-converse"],
  vertex: ["gemini", "anthropic"],
};

/** Hosts by the settings that are only for them. */
const SETTINGS = {
  region: ["bedrock", "vertex"],
  project: ["vertex"],
  credential_file: ["vertex"],
  api_version: ["azure"],
} as const satisfies Partial<Record<keyof ProviderInput, readonly HostKind[]>>;

interface HostParts {
  readonly entry: ProviderInput;
  readonly dialect: Dialect;
  /** Path of the provider. */
  readonly path: ConfigPath;
  readonly report: Report;
}

/** The host of a provider, and reports of its mistakes. Undefined without one, and for one that lacks a setting. */
export function resolveHost({ entry, dialect, path, report }: HostParts): Host | undefined {
  const { host: kind } = entry;
  for (const [key, hosts] of Object.entries(SETTINGS) as [keyof typeof SETTINGS, readonly HostKind[]][])
    if (entry[key] !== undefined && (kind === undefined || !hosts.includes(kind)))
      report([...path, key], `is only for providers with host: ${hosts.join(" or ")}`);
  if (kind === undefined) return undefined;
  if (!DIALECTS_OF[kind].includes(dialect))
    report([...path, "dialect"], `the host ${kind} has only: ${DIALECTS_OF[kind].join(", ")}`);
  switch (kind) {
    case "azure":
      return resolveAzure({ entry, dialect, path, report });
    case "bedrock":
      return resolveBedrock(entry, path, report);
    case "vertex":
      return resolveVertex(entry, path, report);
  }
}

const AZURE_EXAMPLE = '"https://NAME.openai.azure.com/openai/v1"';

/** The Responses API is one of the v1 API alone. Source: "Azure OpenAI Responses API", learn.microsoft.com, November 2026. */
function resolveAzure({ entry, dialect, path, report }: HostParts): Host {
  const { base_url: baseUrl, api_version: apiVersion } = entry;
  const pathname = baseUrl === undefined ? undefined : URL.parse(baseUrl)?.pathname.replace(/\/+$/, "");
  if (apiVersion !== undefined && dialect === "openai-responses")
    report(
      [...path, "api_version"],
      `is not for the dialect openai-responses, which has no addresses of deployments; remove it, and let base_url be like ${AZURE_EXAMPLE}`,
    );
  else if (baseUrl === undefined)
    report(
      [...path, "base_url"],
      `is required for the host azure: the address of the resource, such as ${AZURE_EXAMPLE}`,
    );
  else if (apiVersion === undefined && pathname === "")
    report(
      [...path, "base_url"],
      dialect === "openai"
        ? `must be like ${AZURE_EXAMPLE}; for addresses of deployments set api_version beside it`
        : `must be like ${AZURE_EXAMPLE}`,
    );
  else if (apiVersion !== undefined && pathname?.endsWith("/openai/v1") === true)
    report([...path, "api_version"], "is not for base_url with /openai/v1; remove one of the two");
  return { kind: "azure", apiVersion };
}

function resolveBedrock({ region }: ProviderInput, path: ConfigPath, report: Report): Host | undefined {
  if (region !== undefined) return { kind: "bedrock", region };
  report([...path, "region"], 'is required for the host bedrock, such as "eu-central-1"');
  return undefined;
}

function resolveVertex(entry: ProviderInput, path: ConfigPath, report: Report): Host | undefined {
  const { project, region, credential_file: credentialFile, api_keys } = entry;
  if (project === undefined) report([...path, "project"], 'is required for the host vertex, such as "my-project-123"');
  if (region === undefined)
    report([...path, "region"], 'is required for the host vertex, such as "europe-west4" or "global"');
  if (api_keys.length > 0)
    report(
      [...path, "api_keys"],
      "is not for the host vertex: it uses Google's application default credentials, or credential_file",
    );
  if (project === undefined || region === undefined) return undefined;
  return { kind: "vertex", project, region, credentialFile };
}

/** Address of a host's service; undefined for one that is in the configuration. */
export function addressOf(host: Host | undefined): string | undefined {
  if (host?.kind === "bedrock") return `https://bedrock-runtime.${host.region}.amazonaws.com`;
  return host?.kind === "vertex" ? vertexAddress(host.region) : undefined;
}

/** Multi-regions have an address of another form than regions. Source: documentation of Vertex AI, locations, November 2026. */
function vertexAddress(region: string): string {
  if (region === "global") return "https://aiplatform.googleapis.com";
  if (region === "us" || region === "eu") return `https://aiplatform.${region}.rep.googleapis.com`;
  return `https://${region}-aiplatform.googleapis.com`;
}

/** An address of the host's own, also for a provider with another `base_url`: list prices are known by it. */
export function sellerAddressOf(host: Host): string {
  return addressOf(host) ?? "https://azure.openai.azure.com";
}

/** The header that carries a key of `api_keys`; in lower case. */
export function keyHeaderOf(dialect: Dialect, host: Host | undefined): string {
  if (host?.kind === "azure") return "api-key";
  return host?.kind === "bedrock" ? "authorization" : DIALECT_DEFAULTS[dialect].credentialHeader;
}
