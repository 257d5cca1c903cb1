import type { CompletionRequest, ResponseFormat } from "../../../gen/parley/v1/completion_pb.js";
import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import { type AllowedTools, type Tool, type ToolChoice, ToolMode } from "../../../gen/parley/v1/tool_pb.js";
import { type Failure, invalidField } from "../../core/failure.ts";
import type { Capabilities, UpstreamModel } from "../../core/provider.ts";
import { type Json, parsed } from "./json.ts";
import {
  enumWord,
  forcesCall,
  omitToolFields,
  readObject,
  tierFactor,
  toolModeWord,
  type TranslationLog,
} from "./translation.ts";

/*
 * Fields of a request that OpenAI's chat completions and its Responses API have in common.
 */

/** Two names of one service tier, and the tier of bought capacity. */
const FAST_TIERS: ReadonlySet<string | undefined> = new Set(["fast", "priority", "scale"]);
/** Highest multiples of the list price: of `fast` that of GPT-5.5, others have 2 at most; and of `ultrafast`. */
const FAST_FACTOR = 2.5;
const ULTRAFAST_FACTOR = 6;

/**
 * Price factor of a service tier. One that is not known here counts as the dearest. Source: OpenAI's pages "Fast mode for API
 * Customers" and "Ultrafast mode", November 2026.
 */
export function toPriceFactor(tier: string | undefined): number {
  return tierFactor(tier, FAST_TIERS.has(tier) ? FAST_FACTOR : ULTRAFAST_FACTOR);
}

/** Sampling parameters of both. Default values of a model without sampling are omitted without a report. */
export function toSampling(
  { temperature, topP, topK }: CompletionRequest,
  can: Capabilities,
  log: TranslationLog,
): { readonly temperature: number | undefined; readonly top_p: number | undefined } {
  const nucleus = can.sampling && (can.temperatureWithTopP || temperature === undefined);
  log.omitWhen(!can.sampling && temperature !== undefined && temperature !== 1, "temperature");
  log.omitWhen(!nucleus && topP !== undefined && topP !== 1, "top_p");
  log.omitWhen(topK !== undefined, "top_k");
  return {
    temperature:
      can.sampling && temperature !== undefined
        ? log.clampToRange("temperature", temperature, [0, can.maxTemperature])
        : undefined,
    top_p: nucleus ? topP : undefined,
  };
}

/** The requested modalities. Throws `invalid_request` for one that the model does not make. */
export function wantedModalities(
  { modalities }: CompletionRequest,
  outputModalities: UpstreamModel["outputModalities"],
): Modality[] {
  const wanted = modalities.filter((modality) => modality !== Modality.UNSPECIFIED);
  const missing = wanted.find((modality) => modality !== Modality.TEXT && !outputModalities.has(modality));
  if (missing !== undefined) throw notMade(missing);
  return wanted;
}

/** Failure of a request for a modality that the model does not make. */
export function notMade(modality: Modality): Failure {
  return invalidField("modalities", `this model does not make ${enumWord(Modality, modality) ?? "this"}`);
}

/**
 * The fields of a picture's shape, as OpenRouter and others have them; undefined without any. Logs audio options without audio, and
 * image options that the model does not take.
 */
export function toImageConfig(
  { modalities, audioOptions, imageOptions }: CompletionRequest,
  can: Capabilities,
  log: TranslationLog,
): { readonly aspect_ratio: string | undefined; readonly image_size: string | undefined } | undefined {
  const { aspectRatio = "", size = "" } = imageOptions ?? {};
  log.omitWhen(audioOptions !== undefined && !modalities.includes(Modality.AUDIO), "audio_options");
  log.omitWhen(!can.imageOptions && aspectRatio !== "", "image_options.aspect_ratio");
  log.omitWhen(!can.imageOptions && size !== "", "image_options.size");
  log.omitWhen(imageOptions?.mask !== undefined, "image_options.mask");
  if (!can.imageOptions || (aspectRatio === "" && size === "")) return undefined;
  return { aspect_ratio: aspectRatio || undefined, image_size: size || undefined };
}

/**
 * Fields that pass through unchanged, with those of `provider_options_json` that `options` names. Others of it are omitted, so that it
 * cannot replace fields of the contract.
 */
export function toPassedFields<Option extends string>(
  request: CompletionRequest,
  options: readonly Option[],
  log: TranslationLog,
) {
  const { metadata } = request;
  return {
    user: request.endUserId,
    safety_identifier: request.safetyIdentifier,
    metadata: Object.keys(metadata).length > 0 ? metadata : undefined,
    service_tier: request.serviceTier,
    prompt_cache_key: request.promptCacheKey ?? request.sessionId,
    ...toOptions(request.providerOptionsJson, options, log),
  };
}

function toOptions<Option extends string>(
  given: CompletionRequest["providerOptionsJson"],
  options: readonly Option[],
  log: TranslationLog,
): Partial<Record<Option, unknown>> {
  const fields: Partial<Record<Option, unknown>> = {};
  for (const name in given) {
    const path = `provider_options_json.${name}`;
    const option = options.find((known) => name === `openai.${known}`);
    if (option === undefined) {
      log.omit(path);
      continue;
    }
    const value = log.verbatim(given[name]!);
    if (value === undefined) throw invalidField(path, "must be JSON");
    fields[option] = value;
  }
  return fields;
}

/** A JSON schema as a response format has it. */
interface NamedSchema {
  readonly name: string;
  readonly description: string | undefined;
  readonly schema: Json | undefined;
  readonly strict: boolean | undefined;
}

/** Response format: a field of the request, and an instruction for models that do not enforce it. */
interface ResponseFormatFields<Format> {
  readonly format?: Format | { readonly type: "json_object" };
  readonly instruction?: string;
}

/**
 * Converts the response format. For a model without structured output it becomes a JSON object with the schema as an
 * instruction, and `response_format.json_schema` is reported as omitted. Throws `invalid_request` for a schema that is not an
 * object.
 */
export function toResponseFormat<Format>(
  responseFormat: ResponseFormat | undefined,
  { can: { jsonSchema }, log }: { readonly can: Capabilities; readonly log: TranslationLog },
  toFormat: (schema: NamedSchema) => Format,
): ResponseFormatFields<Format> {
  const form = responseFormat?.format;
  if (form?.case === "jsonObject") return { format: { type: "json_object" } };
  if (form?.case !== "jsonSchema") return {};
  const { name, description, schemaJson, strict } = form.value;
  const schema = schemaJson === "" ? undefined : readObject(schemaJson, "response_format.json_schema.schema_json");
  if (jsonSchema) return { format: toFormat({ name, description: description || undefined, schema, strict }) };
  log.omit("response_format.json_schema");
  const purpose = description === "" ? "" : ` It is: ${description}`;
  const rule =
    schema === undefined ? "a JSON object" : `a JSON object that satisfies this JSON Schema: ${JSON.stringify(schema)}`;
  return { format: { type: "json_object" }, instruction: `Answer only with ${rule}.${purpose}` };
}

/** How an API writes a tool and a choice. */
interface ToolForms<WireTool, Choice> {
  /** Undefined for a tool that is left out. */
  readonly toTool: (tool: Tool, path: string) => WireTool | undefined;
  readonly toNamed: (kind: "function" | "custom", name: string) => Choice;
  readonly toAllowed: (mode: "auto" | "required", tools: object[]) => Choice;
}

/**
 * Converts tools and tool choice; nothing without tools, because servers refuse a choice or an empty list then. Throws
 * `invalid_request` for an invalid schema.
 */
export function toToolFields<WireTool, Choice extends object>(
  request: CompletionRequest,
  { can, log, dialect }: { readonly can: Capabilities; readonly log: TranslationLog; readonly dialect: string },
  forms: ToolForms<WireTool, Choice>,
): {
  readonly tools?: WireTool[];
  readonly tool_choice?: Choice | ReturnType<typeof toolModeWord>;
  readonly parallel_tool_calls?: false | undefined;
} {
  const { tools, toolChoice, parallelToolCalls } = request;
  if (tools.length === 0 || !can.tools) {
    omitToolFields(request, log);
    return {};
  }
  const sent = tools
    .map((tool, index) => {
      log.omitWhen(tool.cacheMark !== undefined, `tools[${index}].cache_mark`);
      return forms.toTool(tool, `tools[${index}]`);
    })
    .filter((tool) => tool !== undefined);
  if (sent.length === 0) return {};
  const forced = forcesCall(toolChoice) && !can.forcedTools;
  log.omitWhen(forced, "tool_choice");
  return {
    tools: sent,
    tool_choice: forced ? "auto" : toToolChoice(toolChoice, { tools, dialect, forms }),
    // True is the default, and many servers do not support the field.
    parallel_tool_calls: parallelToolCalls === false ? false : undefined,
  };
}

/** The tools of a request, and how they are written. */
interface ChoiceContext<Choice> {
  readonly tools: readonly Tool[];
  readonly dialect: string;
  readonly forms: Pick<ToolForms<unknown, Choice>, "toNamed" | "toAllowed">;
}

function toToolChoice<Choice>(
  toolChoice: ToolChoice | undefined,
  context: ChoiceContext<Choice>,
): Choice | ReturnType<typeof toolModeWord> {
  const choice = toolChoice?.choice;
  switch (choice?.case) {
    case "mode":
      return toolModeWord(choice.value);
    case "function":
    case "custom":
      return context.forms.toNamed(choice.case, choice.value);
    case "allowed":
      return toAllowed(choice.value, context);
    case undefined:
      return undefined;
  }
}

function toAllowed<Choice>({ mode, names }: AllowedTools, { tools, dialect, forms }: ChoiceContext<Choice>): Choice {
  const custom = new Set(tools.flatMap(({ kind }) => (kind.case === "custom" ? [kind.value.name] : [])));
  const named = names.map((name) => forms.toNamed(custom.has(name) ? "custom" : "function", name) as object);
  // Native tools have no name that the caller could list, so they stay allowed.
  const native = tools.flatMap(({ kind }) =>
    kind.case === "native" && kind.value.dialect === dialect ? [parsed(kind.value.json) as object] : [],
  );
  return forms.toAllowed(mode === ToolMode.REQUIRED ? "required" : "auto", [...named, ...native]);
}
