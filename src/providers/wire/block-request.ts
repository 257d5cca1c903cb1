import type { CompletionRequest, JsonSchemaFormat } from "../../../gen/parley/v1/completion_pb.js";
import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import type { FunctionTool } from "../../../gen/parley/v1/tool_pb.js";
import { invalidField } from "../../core/failure.ts";
import type { BlockContext } from "./block-turns.ts";
import { isObject, parseMeasured } from "./json.ts";
import { isStrictSchema, toStrictSchema } from "./strict-schema.ts";
import { isVerbositySet, type TranslationLog } from "./translation.ts";

/*
 * Fields beside the messages that Anthropic's Messages API and Bedrock's Converse have in common.
 */

/** Smallest `top_p` that models take together with reasoning. */
const MIN_REASONING_TOP_P = 0.95;

/** Sampling parameters. Logs the ones that the model does not take, unless they have the default value. */
export function toSampling(
  { request: { temperature, topP, topK }, model: { capabilities }, log }: BlockContext,
  { reasoning, hasTopK = true }: { readonly reasoning: boolean; readonly hasTopK?: boolean },
): { [K in "temperature" | "topP" | "topK"]: number | undefined } {
  const takesTemperature = capabilities.sampling && !reasoning;
  const sentTemperature = takesTemperature ? temperature : undefined;
  const takesTopP =
    capabilities.sampling &&
    (capabilities.temperatureWithTopP || sentTemperature === undefined) &&
    (!reasoning || (topP ?? 1) >= MIN_REASONING_TOP_P);
  const takesTopK = takesTemperature && hasTopK;
  log.omitWhen(!takesTemperature && (temperature ?? 1) !== 1, "temperature");
  log.omitWhen(!takesTopP && (topP ?? 1) !== 1, "top_p");
  log.omitWhen(!takesTopK && topK !== undefined, "top_k");
  const range = [0, capabilities.maxTemperature] as const;
  return {
    temperature: sentTemperature === undefined ? undefined : log.clampToRange("temperature", sentTemperature, range),
    topP: takesTopP ? topP : undefined,
    topK: takesTopK ? topK : undefined,
  };
}

/** Throws `invalid_request` for several choices and for image or audio output, which these APIs do not support. */
export function refuseImpossible({ choiceCount, modalities }: CompletionRequest): void {
  if (choiceCount !== undefined && choiceCount > 1) throw invalidField("choice_count", "must be 1 for this model");
  if (modalities.includes(Modality.IMAGE) || modalities.includes(Modality.AUDIO))
    throw invalidField("modalities", "this model answers with text only");
}

/** Logs the parameters that these APIs do not support, unless they have no effect. */
export function omitUnsupported(request: CompletionRequest, log: TranslationLog): void {
  log.omitWhen(request.seed !== undefined, "seed");
  log.omitWhen((request.frequencyPenalty ?? 0) !== 0, "frequency_penalty");
  log.omitWhen((request.presencePenalty ?? 0) !== 0, "presence_penalty");
  log.omitWhen(Object.keys(request.logitBias).length > 0, "logit_bias");
  log.omitWhen(request.logprobs !== undefined, "logprobs");
  log.omitWhen((request.logprobs?.topCount ?? 0) > 0, "logprobs.top_count");
  log.omitWhen(Boolean(request.imageOptions?.aspectRatio), "image_options.aspect_ratio");
  log.omitWhen(Boolean(request.imageOptions?.size), "image_options.size");
  log.omitWhen(request.imageOptions?.mask !== undefined, "image_options.mask");
  log.omitWhen(Boolean(request.imageOptions?.partialCount), "image_options.partial_count");
  log.omitWhen(request.audioOptions !== undefined, "audio_options");
  log.omitWhen(Object.keys(request.metadata).length > 0, "metadata");
  log.omitWhen(request.store === true, "store");
  log.omitWhen(isVerbositySet(request), "verbosity");
  log.omitWhen(request.prediction !== undefined, "prediction");
  log.omitWhen(request.promptCacheKey !== undefined, "prompt_cache_key");
}

const FORMAT_FIELD = "response_format.json_schema";
const SCHEMA_FIELD = `${FORMAT_FIELD}.schema_json`;

const JSON_ONLY =
  "Answer with exactly one JSON object and nothing else: no introduction, no explanation, no code fence around it.";

/** The request's JSON format: a schema that the provider enforces, an instruction for the system prompt, or neither. */
interface JsonFormat {
  readonly schema?: Readonly<Record<string, unknown>>;
  readonly instruction?: string;
}

/**
 * Maps `response_format`. JSON without a schema, or for a model without a JSON mode, becomes an instruction. A schema or rule that is
 * not enforced is logged as omitted. Throws `invalid_request` for an invalid schema.
 */
export function toJsonFormat({ request, model, log }: BlockContext): JsonFormat {
  const format = request.responseFormat?.format;
  if (format?.case !== "jsonObject" && format?.case !== "jsonSchema") return {};
  const given = format.case === "jsonSchema" ? readSchema(format.value) : undefined;
  if (given === undefined) return { instruction: JSON_ONLY };
  if (!model.capabilities.jsonSchema) {
    log.omit(FORMAT_FIELD);
    return { instruction: `${JSON_ONLY} It satisfies this JSON schema:\n${JSON.stringify(given)}` };
  }
  const { schema, unenforced } = toStrictSchema(given, SCHEMA_FIELD);
  for (const field of unenforced) log.omit(field);
  return { schema };
}

/** Undefined without a schema: any JSON is valid. */
function readSchema({ schemaJson, description }: JsonSchemaFormat): Record<string, unknown> | undefined {
  if (schemaJson === "") return undefined;
  const schema = parseMeasured(schemaJson);
  if (!isObject(schema)) throw invalidField(SCHEMA_FIELD, "must be a JSON schema");
  return description === "" || schema["description"] !== undefined ? schema : { ...schema, description };
}

/** The input schema of a tool without arguments. */
export const NO_ARGUMENTS = { type: "object", properties: {} };

/** A function of the request. `strict` is true only if the model enforces the schema; otherwise a requested one is logged as omitted. */
export function toFunction(
  { model, log }: BlockContext,
  { name, description, parametersJson, strict }: FunctionTool,
  field: string,
): {
  readonly name: string;
  /** Undefined for an empty one, which the provider refuses. */
  readonly description: string | undefined;
  readonly schema: Readonly<Record<string, unknown>>;
  readonly strict: true | undefined;
} {
  const schema = toInputSchema(parametersJson, `${field}.function.parameters_json`);
  const enforced = strict === true && model.capabilities.jsonSchema && isStrictSchema(schema);
  log.omitWhen(strict === true && !enforced, `${field}.function.strict`);
  return { name, description: description || undefined, schema, strict: enforced || undefined };
}

function toInputSchema(text: string, field: string): Record<string, unknown> {
  if (text === "") return NO_ARGUMENTS;
  const schema = parseMeasured(text);
  if (!isObject(schema)) throw invalidField(field, "must be a JSON schema");
  if (Object.keys(schema).length === 0) return NO_ARGUMENTS;
  if (schema["type"] === undefined) return { type: "object", ...schema };
  if (schema["type"] !== "object") throw invalidField(`${field}.type`, 'must be "object"');
  return schema;
}
