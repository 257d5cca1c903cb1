import type { ConfigPath } from "../config-error.ts";
import { readHost } from "./hosts.ts";
import { Part } from "./part.ts";
import { type Hosted, type ProviderEntry, readProvider } from "./provider.ts";
import { Remarks } from "./remarks.ts";

/** A model of Parley's file without its provider, as it is written there. */
type ModelEntry = Readonly<Record<string, unknown>>;

/** One entry of `model_list`. */
export interface Deployment {
  /** In the file. */
  readonly path: ConfigPath;
  /** The name that callers use. */
  readonly name: string;
  /** `model_info.id`. */
  readonly id: string | undefined;
  /** First choice of the provider's name. */
  readonly providerName: string;
  readonly provider: ProviderEntry;
  readonly model: ModelEntry;
  readonly isEmbedding: boolean;
  /** Setting by which LiteLLM distributes requests: the first of these that the first deployment of a name has. */
  readonly shares: { readonly weight?: number; readonly rpm?: number; readonly tpm?: number };
  /** Place among the deployments of a name. */
  readonly order: number | undefined;
  readonly remarks: Remarks;
}

/** The named credentials of the file, by their names. */
export type Credentials = ReadonlyMap<string, Readonly<Record<string, unknown>>>;

const MODES: ReadonlySet<string> = new Set(["chat", "responses", "embedding"]);

/**
 * Reads an entry of `model_list`. Undefined for one without a counterpart; `lost` has the reasons. Entries with `*` are not read
 * here.
 */
export function readDeployment(entry: Part, credentials: Credentials, lost: Remarks): Deployment | undefined {
  const remarks = new Remarks();
  const name = entry.takeText("model_name");
  const params = withCredentials(entry.part("litellm_params"), credentials, remarks);
  const info = entry.part("model_info");
  const model = params.takeText("model");
  if (name === undefined || model === undefined) {
    lost.lost(entry.path, "it has no model_name, or no model in litellm_params");
    return undefined;
  }
  const host = readHost(model, params.takeText("custom_llm_provider"));
  const mode = readMode(info, host.model, remarks);
  if (!MODES.has(mode) || host.model === "") {
    const reason = host.model === "" ? "without a name" : `of the mode ${mode}`;
    lost.lost(
      MODES.has(mode) ? [...params.path, "model"] : info.path,
      `Parley has no models ${reason}, so ${name} is left out`,
    );
    return undefined;
  }
  const isResponses = mode === "responses" || host.model.startsWith("responses/");
  const hosted = readProvider({
    host: { ...host, model: host.model.replace(/^responses\//, "") },
    params,
    remarks,
    responses: isResponses,
  });
  const isEmbedding = mode === "embedding";
  if (hosted !== undefined && isEmbedding && !hosted.embeds)
    remarks.lost(params.path, "Parley makes embeddings with the dialects openai and gemini only");
  if (hosted === undefined || (isEmbedding && !hosted.embeds)) {
    lost.add(remarks);
    return undefined;
  }
  const shares = readShares([params, entry], remarks);
  const order = params.takeNumber("order");
  const facts = isEmbedding ? embeddingFacts(info) : completionFacts({ hosted, params, info, remarks });
  const price = readPrice({ params, info, remarks, isEmbedding });
  const read = {
    path: entry.path,
    name,
    id: info.takeText("id"),
    providerName: hosted.name,
    provider: hosted.entry,
    model: { upstream_model: hosted.upstreamModel, ...describe(info), ...facts, ...price },
    isEmbedding,
    shares,
    order,
    remarks,
  };
  for (const part of [entry, params, info]) remarks.unread(part);
  return read;
}

/** `litellm_credential_name` stands for settings that the entry does not have itself. */
function withCredentials(params: Part, credentials: Credentials, remarks: Remarks): Part {
  const name = params.takeText("litellm_credential_name");
  if (name === undefined) return params;
  const found = credentials.get(name);
  if (found === undefined) {
    remarks.lost([...params.path, "litellm_credential_name"], "credential_list has no credential of this name");
    return params;
  }
  const own = Object.fromEntries(params.unread().map((key) => [key, params.take(key)]));
  return new Part({ ...found, ...own }, params.path);
}

function readMode(info: Part, model: string, remarks: Remarks): string {
  const mode = info.takeText("mode");
  if (mode !== undefined) return mode;
  if (!/embed/i.test(model)) return "chat";
  remarks.check(info.path, "by its name taken for a model of embeddings; if it is not, remove modalities");
  return "embedding";
}

/** Older files have the shares beside `litellm_params`. */
function readShares(parts: readonly Part[], remarks: Remarks): Deployment["shares"] {
  const shares: Partial<Record<keyof Deployment["shares"], number>> = {};
  for (const part of parts)
    for (const key of ["weight", "rpm", "tpm"] as const) {
      const share = part.takeNumber(key);
      if (share === undefined) continue;
      shares[key] ??= share;
      if (key !== "weight")
        remarks.lost(
          [...part.path, key],
          "there are no rates of a deployment, it is at most a weight; limit keys and accounts: parley keys create --rpm, --tpm",
        );
    }
  return shares;
}

function describe(info: Part): ModelEntry {
  const description = info.takeText("description");
  return description === undefined ? {} : { description };
}

function embeddingFacts(info: Part): ModelEntry {
  const window = info.takeNumber("max_input_tokens") ?? info.takeNumber("max_tokens");
  return {
    ...(window !== undefined && { context_window: window }),
    modalities: { input: ["text"], output: ["embedding"] },
  };
}

interface FactParts {
  readonly hosted: Hosted;
  readonly params: Part;
  readonly info: Part;
  readonly remarks: Remarks;
}

/** Parley's default of `max_output_tokens`. */
const ASSUMED_OUTPUT = 32_768;

function completionFacts({ hosted, params, info, remarks }: FactParts): ModelEntry {
  const contextWindow = info.takeNumber("max_input_tokens");
  const maxOutput = info.takeNumber("max_output_tokens") ?? info.takeNumber("max_tokens");
  const capabilities = readCapabilities(hosted, info);
  const timeouts = readTimeouts(params, remarks);
  const defaultMax = params.takeNumber("max_tokens") ?? params.takeNumber("max_completion_tokens");
  const tokens = {
    context_window: contextWindow,
    // A default above the assumed most would be refused.
    max_output_tokens: maxOutput ?? (defaultMax !== undefined && defaultMax > ASSUMED_OUTPUT ? defaultMax : undefined),
    default_max_tokens: defaultMax === undefined ? undefined : Math.min(defaultMax, maxOutput ?? defaultMax),
  };
  return {
    ...Object.fromEntries(Object.entries(tokens).filter(([, number]) => number !== undefined)),
    modalities: { input: readInput(hosted, info), output: ["text"] },
    ...(Object.keys(capabilities).length > 0 && { capabilities }),
    ...(Object.keys(timeouts).length > 0 && { timeouts }),
  };
}

/** LiteLLM forwards all content; Parley refuses content that a model is not configured to take. */
function readInput({ dialect }: Hosted, info: Part): string[] {
  const [vision, audio, files] = ["supports_vision", "supports_audio_input", "supports_pdf_input"].map((key) =>
    info.takeBoolean(key),
  );
  return [
    "text",
    ...((vision ?? true) ? ["image"] : []),
    ...((audio ?? dialect === "gemini") ? ["audio"] : []),
    ...(files === true ? ["file"] : []),
  ];
}

function readCapabilities({ dialect }: Hosted, info: Part): ModelEntry {
  const tools = info.takeBoolean("supports_function_calling");
  const schema = info.takeBoolean("supports_response_schema");
  const reasoning = info.takeBoolean("supports_reasoning");
  return {
    ...(tools === false && { tools: false, forced_tools: false }),
    ...(schema === false && { json_schema: false }),
    ...(reasoning === true && dialect === "openai" && { reasoning: "level" }),
    ...(reasoning === false && dialect === "openai-responses" && { reasoning: "none" }),
  };
}

const MAX_MS = 24 * 60 * 60 * 1000;

/** Milliseconds for LiteLLM's seconds, within the range of Parley's settings. */
export function toMs(seconds: number): number {
  return Math.min(MAX_MS, Math.max(1, Math.round(seconds * 1000)));
}

function readTimeouts(params: Part, remarks: Remarks): ModelEntry {
  const timeout = params.takeNumber("timeout");
  const stream = params.takeNumber("stream_timeout");
  if (timeout !== undefined)
    remarks.check([...params.path, "timeout"], "total_ms is for all attempts of a request together");
  if (stream !== undefined)
    remarks.check([...params.path, "stream_timeout"], "first_content_ms is to the first content of a stream");
  return {
    ...(stream !== undefined && { first_content_ms: toMs(stream) }),
    ...(timeout !== undefined && { total_ms: toMs(timeout) }),
  };
}

/** Parley's kinds of tokens by LiteLLM's prices for one token. */
const PRICES = {
  input_cost_per_token: "input",
  output_cost_per_token: "output",
  cache_read_input_token_cost: "cached_input",
  cache_creation_input_token_cost: "cache_write",
  input_cost_per_audio_token: "audio_input",
  output_cost_per_audio_token: "audio_output",
} as const;

function readPrice({
  params,
  info,
  remarks,
  isEmbedding,
}: Omit<FactParts, "hosted"> & { readonly isEmbedding: boolean }): ModelEntry {
  const price: Record<string, number> = {};
  for (const [key, kind] of Object.entries(PRICES)) {
    const perToken = params.takeNumber(key) ?? info.takeNumber(key);
    if (perToken !== undefined) price[kind] = toPerMillion(perToken);
  }
  const missing = ["input", ...(isEmbedding ? [] : ["output"])].filter((kind) => !(kind in price));
  if (missing.length === 0) return { price };
  if (Object.keys(price).length > 0)
    remarks.lost(params.path, `the price lacks that of the ${missing.join(" and the ")}, so the list price is used`);
  return {};
}

/** Without the digits that binary fractions add. */
function toPerMillion(perToken: number): number {
  return Number((perToken * 1_000_000).toPrecision(12));
}
