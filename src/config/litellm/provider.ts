import { privateReason } from "../addresses.ts";
import type { Dialect } from "../dialects.ts";
import { type Preset, PRESETS } from "../presets.ts";
import { SECRET_HEADER } from "../scalars.ts";
import { takeAddress } from "./address.ts";
import type { HostedModel, HostRule } from "./hosts.ts";
import { isOnlyVariable, isVariable, type Part, toParleyText } from "./part.ts";
import type { Remarks } from "./remarks.ts";

/** A provider of Parley's file, as it is written there. */
export type ProviderEntry = Readonly<Record<string, unknown>>;

/** The provider and the model's name there that a deployment becomes. */
export interface Hosted {
  /** First choice of the provider's name. */
  readonly name: string;
  readonly dialect: Dialect;
  readonly entry: ProviderEntry;
  readonly upstreamModel: string;
  /** Whether `embeddings` can be made there. */
  readonly embeds: boolean;
}

interface HostParts {
  readonly host: HostedModel;
  /** `litellm_params`. */
  readonly params: Part;
  readonly remarks: Remarks;
  /** Whether the model answers by the Responses API. */
  readonly responses: boolean;
}

/** Undefined, with a remark, for a deployment without a counterpart. */
export function readProvider(parts: HostParts): Hosted | undefined {
  const { host, params, remarks } = parts;
  const { rule } = host;
  if (rule === undefined) {
    const name = host.prefix === undefined ? "without a provider's prefix" : `of the provider ${host.prefix}`;
    remarks.lost(
      [...params.path, "model"],
      `a model ${name} is not converted; if it speaks a dialect of Parley, write it with dialect and base_url`,
    );
    return undefined;
  }
  switch (rule.kind) {
    case "address":
      return readAddress(rule, parts);
    case "azure":
      return readAzure(parts);
    case "bedrock":
      return readBedrock(parts);
    case "vertex":
      return readVertex(parts);
  }
}

function readAddress(rule: Extract<HostRule, { kind: "address" }>, parts: HostParts): Hosted {
  const { host, params, remarks } = parts;
  const given = takeAddress({ params, remarks, keys: ["api_base", "base_url"] })?.text;
  // A server of another maker has neither OpenAI's key nor its capabilities.
  const isForeign = rule.preset === "openai" && given !== undefined && !given.includes("api.openai.com");
  const preset: Preset | undefined = rule.preset === undefined || isForeign ? undefined : PRESETS[rule.preset];
  const dialect = parts.responses && rule.preset === "openai" ? "openai-responses" : (preset?.dialect ?? "openai");
  const baseUrl = given === undefined ? undefined : toBaseUrl(given, dialect, rule.end);
  const path = [...params.path, "api_base"];
  const url = baseUrl === undefined || isVariable(baseUrl) ? null : URL.parse(baseUrl);
  if (baseUrl !== undefined && isVariable(baseUrl))
    remarks.check(path, `${baseUrl} must not end with a slash; for plain http or a private address add allow_private`);
  if (preset === undefined && baseUrl === undefined)
    remarks.check(path, "LiteLLM reads the address from its environment; write base_url");
  const variable = rule.variable ?? (isForeign ? "OPENAI_API_KEY" : preset?.credential);
  const key = takeKey(parts, variable);
  const isPrivate = preset?.isLocal !== true && url !== null && privateReason(url) !== undefined;
  return {
    name: preset === undefined ? "compatible" : rule.preset!,
    dialect,
    embeds: dialect === "openai" || dialect === "gemini",
    upstreamModel: host.model,
    entry: {
      ...(preset === undefined ? { dialect } : { preset: rule.preset }),
      ...(preset !== undefined && dialect !== preset.dialect && { dialect }),
      ...(baseUrl !== undefined && { base_url: baseUrl }),
      ...(key !== undefined && { api_keys: [key] }),
      ...(isPrivate && { allow_private: true }),
      ...takeHeaders(parts),
    },
  };
}

/** What LiteLLM appends itself differs by the dialect. */
function toBaseUrl(given: string, dialect: Dialect, end = ""): string {
  const bare = given.replace(/\/+$/, "");
  if (dialect === "anthropic") return bare.replace(/\/v1(\/messages)?$/, "");
  if (dialect === "gemini") return bare.replace(/\/v1(beta)?$/, "");
  const root = bare.replace(/\/(chat\/completions|responses)$/, "");
  return root.endsWith(end) ? root : root + end;
}

function readAzure(parts: HostParts): Hosted {
  const { host, params, remarks } = parts;
  const path = [...params.path, "api_base"];
  const address = takeAddress({ params, remarks, keys: ["api_base"], converted: ["api-version"] });
  const given = address?.text ?? "${AZURE_API_BASE}";
  const url = isVariable(given) ? null : URL.parse(given);
  const version = params.takeText("api_version") ?? address?.query.get("api-version") ?? undefined;
  const isDated = version !== undefined && !["v1", "preview", "latest"].includes(version) && !parts.responses;
  const resource = url === null ? given : url.origin;
  if (isVariable(given))
    remarks.check(path, `${given} has to be the address of the resource alone, without a slash at its end`);
  if (version !== undefined && !isDated)
    remarks.check([...params.path, "api_version"], "the v1 API of the resource is asked, which has no versions");
  // Without a key Parley asks Entra ID for a token, as LiteLLM does with these.
  const hasIdentity = ["azure_ad_token", "tenant_id", "client_id"].some((key) => params.keys().includes(key));
  const key = takeKey(parts, hasIdentity ? undefined : "AZURE_API_KEY");
  const deployment = url === null ? undefined : /\/deployments\/([^/]+)/.exec(url.pathname)?.[1];
  return {
    name: "azure",
    dialect: parts.responses ? "openai-responses" : "openai",
    embeds: !parts.responses,
    upstreamModel: deployment ?? host.model,
    entry: {
      preset: "azure",
      ...(parts.responses && { dialect: "openai-responses" }),
      base_url: isDated ? resource : `${resource.replace(/\/+$/, "")}/openai/v1`,
      ...(isDated && { api_version: version }),
      ...(key !== undefined && { api_keys: [key] }),
      ...takeHeaders(parts),
    },
  };
}

/** A region, and the API of Bedrock that LiteLLM should use, before the model's name. */
const BEDROCK_PATH = /^(?:(converse|invoke)\/)?(?:([a-z]{2}(?:-[a-z]+)+-\d)\/)?(.+)$/;

function readBedrock(parts: HostParts): Hosted | undefined {
  const { host, params, remarks } = parts;
  const [, api, ownRegion, model = host.model] = BEDROCK_PATH.exec(host.model) ?? [];
  if (/embed/i.test(model)) {
    remarks.lost([...params.path, "model"], "Parley has no embeddings of Bedrock");
    return undefined;
  }
  const region =
    params.takeText("aws_region_name") ?? params.takeText("region_name") ?? ownRegion ?? "${AWS_REGION_NAME}";
  const baseUrl = takeAddress({ params, remarks, keys: ["aws_bedrock_runtime_endpoint", "api_base"] })?.text;
  const isClaude = /(^|\.)anthropic\.claude/.test(model) && api !== "converse";
  const key = takeKey(parts);
  return {
    name: isClaude ? "bedrock-claude" : "bedrock",
    dialect: isClaude ? "anthropic" : "bedrock-converse",
    embeds: false,
    upstreamModel: model,
    entry: {
      preset: "bedrock",
      ...(!isClaude && { dialect: "bedrock-converse" }),
      region,
      ...(baseUrl !== undefined && { base_url: baseUrl }),
      ...(key !== undefined && { api_keys: [key] }),
      ...takeHeaders(parts),
    },
  };
}

function readVertex(parts: HostParts): Hosted | undefined {
  const { host, params, remarks } = parts;
  const isClaude = host.model.startsWith("claude");
  if (!isClaude && !/^(gemini|text-|textembedding|multimodalembedding)/.test(host.model)) {
    remarks.lost([...params.path, "model"], "of Vertex AI Parley has Gemini, Claude and embeddings");
    return undefined;
  }
  const credentials = params.takeText("vertex_credentials") ?? params.takeText("vertex_ai_credentials");
  const isFile = credentials !== undefined && (credentials.startsWith("/") || isVariable(credentials));
  if (credentials !== undefined)
    remarks.check(
      [...params.path, "vertex_credentials"],
      isFile
        ? "credential_file is the absolute path of a file; where the value is JSON, write that into a file"
        : "write the credential into a file, and its absolute path into credential_file",
    );
  return {
    name: isClaude ? "vertex-claude" : "vertex",
    dialect: isClaude ? "anthropic" : "gemini",
    embeds: !isClaude,
    upstreamModel: host.model,
    entry: {
      preset: "vertex",
      ...(isClaude && { dialect: "anthropic" }),
      project: params.takeText("vertex_project") ?? params.takeText("vertex_ai_project") ?? "${VERTEXAI_PROJECT}",
      region:
        params.takeText("vertex_location") ??
        params.takeText("vertex_ai_location") ??
        params.takeText("region_name") ??
        "${VERTEXAI_LOCATION}",
      ...(isFile && { credential_file: credentials }),
      ...takeHeaders(parts),
    },
  };
}

/** Values for servers that need no key. */
const NO_KEY = /^(none|null|empty|dummy|anything|no-?key|not-?needed|fake-?(api-?)?key)?$/i;

/** The key as a variable: one that is written in the file stays out of the result. `other`: the variable of a missing one. */
function takeKey({ host, params, remarks }: HostParts, other?: string): string | undefined {
  const key = params.takeText("api_key");
  if (key === undefined) return other === undefined ? undefined : `\${${other}}`;
  if (NO_KEY.test(key)) return undefined;
  if (isOnlyVariable(key)) return key;
  return asVariable({ key: "api_key", words: `${host.prefix ?? "litellm"}_api_key`, params, remarks });
}

interface SecretParts extends Pick<HostParts, "params" | "remarks"> {
  /** The setting that has the secret. */
  readonly key: string;
  /** Words that its variable is named after. */
  readonly words: string;
}

function asVariable({ key, words, params, remarks }: SecretParts): string {
  // Of two deployments with keys in the file each has a variable.
  const place = params.path.filter((step) => typeof step === "number").map((index) => index + 1);
  const name = [words, ...place].join("_").toUpperCase().replaceAll(/\W/g, "_");
  remarks.check([...params.path, key], `it is a secret in the file: set ${name} to it in the environment of Parley`);
  return `\${${name}}`;
}

function takeHeaders({ params, remarks }: HostParts): { readonly headers?: Readonly<Record<string, string>> } {
  const headers: Record<string, string> = {};
  for (const part of [params.part("headers"), params.part("extra_headers")]) {
    for (const name of part.keys()) {
      const value = part.takeText(name);
      if (value === undefined) continue;
      const isSecret = SECRET_HEADER.test(name) && !isOnlyVariable(value);
      headers[name] = isSecret ? asVariable({ key: name, words: name, params: part, remarks }) : value;
    }
    remarks.unread(part);
  }
  const organization = params.take("organization");
  if (typeof organization === "string") headers["OpenAI-Organization"] = toParleyText(organization);
  else if (organization !== undefined)
    remarks.lost([...params.path, "organization"], "write a provider with the header for each organization");
  return Object.keys(headers).length === 0 ? {} : { headers };
}
