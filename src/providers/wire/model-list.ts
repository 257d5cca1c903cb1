import type { OfferedModel, OfferedOutput, Provider } from "../../core/provider.ts";
import { array, count, isObject, type Json, object, string } from "./json.ts";
import type { Upstream } from "../transport/http.ts";
import { type DialectCall, fetchWhole } from "./response.ts";

/** Limit of models that are read from one list. OpenRouter, which lists most, has some 700. */
const MAX_LISTED = 2_000;

/** Size limit of a list: some kilobytes per model. */
const MAX_LIST_BYTES = 8 * 1024 * 1024;

/** Limit of a model's name; longer ones are left out. */
const MAX_NAME_CHARS = 256;

/** Names of the context window, and of the longest answer: those of the hosts below, and of vLLM, SGLang and Groq. */
const CONTEXT = [
  "context_length",
  "context_window",
  "max_context_length",
  "max_model_len",
  "max_input_tokens",
  "inputTokenLimit",
] as const;
const OUTPUT = ["max_completion_tokens", "max_output_tokens", "outputTokenLimit"] as const;

/** Kinds of models at Together that make no completions ("List All Models" of its API reference, November 2026). */
const OTHER_TYPES: ReadonlySet<string> = new Set([
  "image",
  "video",
  "audio",
  "embedding",
  "moderation",
  "rerank",
  "transcribe",
]);

/** Creates `Provider.list` of a service with its list at a path below the base URL. */
export function listAt(
  upstream: Upstream,
  request: Pick<DialectCall, "path" | "headers" | "toFailure">,
): NonNullable<Provider["list"]> {
  return (signal) => {
    const call: DialectCall = {
      ...request,
      method: "GET",
      body: Buffer.alloc(0),
      signal,
      idleMs: LIST_IDLE_MS,
      maxBytes: MAX_LIST_BYTES,
    };
    return fetchWhole(upstream, call, readModelList);
  };
}

/** Longest silence while a list is read. */
const LIST_IDLE_MS = 10_000;

/**
 * Reads the models that make completions from a list, in its order and each once. Accepts OpenAI's form (`data`), Google's (`models`) and
 * Together's (an array), with the facts that hosts add. A model without an output type is taken to make completions.
 */
export function readModelList(json: unknown): readonly OfferedModel[] {
  const { data, models } = object(json);
  const found = new Map<string, OfferedModel>();
  for (const each of array(Array.isArray(json) ? json : (data ?? models))) {
    const entry = object(each);
    const name = string(entry["id"]) || string(entry["name"]).replace(/^models\//, "");
    if (name === "" || name.length > MAX_NAME_CHARS || !makesCompletions(entry)) continue;
    if (found.size === MAX_LISTED) break;
    found.set(name, {
      name,
      contextWindow: firstCount(entry, CONTEXT),
      maxOutputTokens: firstCount(entry, OUTPUT),
      outputModalities: knownOutputs(outputsOf(entry)),
    });
  }
  return [...found.values()];
}

/** Whether a model makes completions, by fields of Google, Together, Mistral and OpenRouter (their API references, November 2026). */
function makesCompletions(entry: Json): boolean {
  const { supportedGenerationMethods: methods, type, capabilities } = entry;
  if (Array.isArray(methods) && !methods.includes("generateContent")) return false;
  if (OTHER_TYPES.has(string(type))) return false;
  if (isObject(capabilities) && capabilities["completion_chat"] === false) return false;
  return outputsOf(entry)?.includes("text") ?? true;
}

/** Output modalities of a model in OpenRouter's list. */
function outputsOf({ architecture }: Json): readonly unknown[] | undefined {
  const outputs = object(architecture)["output_modalities"];
  return Array.isArray(outputs) ? outputs : undefined;
}

/** Outputs that the contract has, each once. */
const OUTPUTS: readonly OfferedOutput[] = ["text", "image", "audio"];
const knownOutputs = (outputs: readonly unknown[] | undefined): readonly OfferedOutput[] | undefined =>
  outputs && OUTPUTS.filter((output) => outputs.includes(output));

function firstCount(entry: Json, names: readonly string[]): number | undefined {
  for (const name of names) {
    const value = count(entry[name]);
    if (value !== undefined && value > 0) return value;
  }
  return undefined;
}
