import type { CompletionRequest, JsonSchemaFormat } from "../../../gen/parley/v1/completion_pb.js";
import { ImageDetail, type Part } from "../../../gen/parley/v1/message_pb.js";
import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import { invalidField } from "../../core/failure.ts";
import { mayDraw } from "../../core/model.ts";
import { toolsInParts } from "../../core/native-tools.ts";
import type { TranslateOptions, Translation, UpstreamModel } from "../../core/provider.ts";
import { array, isObject, parseMeasured } from "../wire/json.ts";
import { isVerbositySet, TranslationLog } from "../wire/translation.ts";
import { toCallersBody } from "./callers-body.ts";
import { toMessages } from "./messages.ts";
import { toReasoning } from "./reasoning.ts";
import { toAnswerSchema } from "./schema.ts";
import { checksSignatures } from "./signature.ts";
import { toolUsesOf } from "./tool-uses.ts";
import { toTools } from "./tools.ts";
import type { GenerateContentRequest, GenerationConfig, JsonObject, SystemInstruction } from "./wire.ts";

/**
 * Largest tokens of a picture: 4K of "Gemini 3.1 Flash Image" (Google Cloud's documentation of models, November 2026). The reference of
 * `maxOutputTokens` does not state whether a picture is cut or refused at the limit.
 */
const PICTURE_TOKENS = 2_520;

/**
 * Converts the request to a `generateContent` body. Pure function. The body is the same for both modes. A whole answer
 * is streamed when its token limit, or the model's default without one, is above `streamAbove`.
 *
 * Throws `invalid_request` for unsupported features that must not be omitted; other unsupported fields are reported.
 */
export function toGeminiRequest(
  request: CompletionRequest,
  model: UpstreamModel,
  { mode, callers }: TranslateOptions,
): Translation {
  const log = new TranslationLog();
  const { systemInstruction, contents } = toMessages(request.messages, { model, log });
  const { instruction, ...form } = toResponseFormat(request, model, log);
  const body: GenerateContentRequest = {
    systemInstruction: instruct(systemInstruction, instruction),
    contents,
    ...toTools(request, model, log),
    generationConfig: toGenerationConfig(request, { model, form }, log),
    safetySettings: toSafetySettings(request, log),
    serviceTier: toServiceTier(request, log),
  };
  omitForeign(request, log);
  const limit = Math.min(request.maxOutputTokens ?? model.defaultMaxTokens, model.maxOutputTokens);
  const facts = {
    streamed: mode === "stream" || limit > model.capabilities.streamAbove,
    maxTokens: body.generationConfig?.maxOutputTokens,
    pictureTokens: request.modalities.includes(Modality.IMAGE) ? PICTURE_TOKENS : undefined,
    tier: body.serviceTier,
  };
  const own = log.isComplete ? toCallersBody(callers, body) : undefined;
  const uses = toolUsesOf(own ?? body, toolsInParts(request.messages, "gemini"));
  return own === undefined
    ? log.finish(body, { ...facts, uses })
    : log.finish(own, { ...facts, uses, isCallers: true, source: callers?.source });
}

function instruct(system: SystemInstruction | undefined, more: string | undefined): SystemInstruction | undefined {
  return more === undefined ? system : { parts: [...(system?.parts ?? []), { text: more }] };
}

function toServiceTier({ serviceTier }: CompletionRequest, log: TranslationLog): GenerateContentRequest["serviceTier"] {
  switch (serviceTier) {
    case "flex":
    case "priority":
      return serviceTier;
    case "default":
      return "standard";
    case undefined:
    case "auto":
      return undefined;
    default:
      log.omit("service_tier");
      return undefined;
  }
}

const SAFETY_SETTINGS = "gemini.safety_settings";

function toSafetySettings(
  { providerOptionsJson }: CompletionRequest,
  log: TranslationLog,
): readonly unknown[] | undefined {
  const text = providerOptionsJson[SAFETY_SETTINGS];
  if (text === undefined) return undefined;
  const settings = log.verbatim(text);
  if (!Array.isArray(settings))
    throw invalidField(`provider_options_json.${SAFETY_SETTINGS}`, "must be the text of a JSON array");
  return array(settings);
}

/** Reports fields without a counterpart at the provider. */
function omitForeign(request: CompletionRequest, log: TranslationLog): void {
  log.omitWhen(Object.keys(request.logitBias).length > 0, "logit_bias");
  log.omitWhen(request.audioOptions !== undefined, "audio_options");
  log.omitWhen(request.endUserId !== undefined, "end_user_id");
  log.omitWhen(request.safetyIdentifier !== undefined, "safety_identifier");
  log.omitWhen(Object.keys(request.metadata).length > 0, "metadata");
  log.omitWhen(request.store === true, "store");
  log.omitWhen(isVerbositySet(request), "verbosity");
  log.omitWhen(request.prediction !== undefined, "prediction");
  log.omitWhen(request.promptCacheKey !== undefined, "prompt_cache_key");
  for (const name of Object.keys(request.providerOptionsJson))
    log.omitWhen(name !== SAFETY_SETTINGS, `provider_options_json.${name}`);
  omitOfMessages(request, log);
  request.tools.forEach(({ cacheMark }, index) => log.omitWhen(cacheMark !== undefined, `tools[${index}].cache_mark`));
}

/**
 * Reports omitted message fields: names of speakers and documents, cache marks (the provider caches prefixes automatically), citations
 * and image detail.
 */
function omitOfMessages({ messages }: CompletionRequest, log: TranslationLog): void {
  messages.forEach(({ name, parts }, index) => {
    const field = `messages[${index}]`;
    log.omitWhen(Boolean(name), `${field}.name`);
    parts.forEach((part, position) => omitOfPart(part, `${field}.parts[${position}]`, log));
  });
}

function omitOfPart({ kind, cacheMark }: Part, field: string, log: TranslationLog): void {
  if (kind.case === "image" && kind.value.detail > ImageDetail.AUTO) log.omit(`${field}.image.detail`);
  if (kind.case === "file" && kind.value.name !== "") log.omit(`${field}.file.name`);
  if (kind.case === "file" && kind.value.citations) log.omit(`${field}.file.citations`);
  if (cacheMark !== undefined) log.omit(`${field}.cache_mark`);
  if (kind.case === "toolResult")
    kind.value.parts.forEach((part, index) => omitOfPart(part, `${field}.tool_result.parts[${index}]`, log));
}

type Form = Pick<GenerationConfig, "responseMimeType" | "responseJsonSchema">;

/** Generation parameters; undefined when the request has none. */
function toGenerationConfig(
  request: CompletionRequest,
  { model, form }: { readonly model: UpstreamModel; readonly form: Form },
  log: TranslationLog,
): GenerationConfig | undefined {
  const config: GenerationConfig = {
    candidateCount: toCandidateCount(request, model),
    ...toSampling(request, model, log),
    maxOutputTokens: toMaxOutputTokens(request, model, log),
    stopSequences: request.stopSequences.length > 0 ? request.stopSequences : undefined,
    ...toLogprobs(request, model, log),
    responseMimeType: form.responseMimeType,
    responseJsonSchema: form.responseJsonSchema,
    responseModalities: toModalities(request, model),
    imageConfig: toImageConfig(request, model, log),
    thinkingConfig: toReasoning(request, model, log),
  };
  return Object.values(config).some((value) => value !== undefined) ? config : undefined;
}

function toMaxOutputTokens(
  { maxOutputTokens }: CompletionRequest,
  model: UpstreamModel,
  log: TranslationLog,
): number | undefined {
  if (maxOutputTokens === undefined) return undefined;
  return log.clampToRange("max_output_tokens", maxOutputTokens, [1, model.maxOutputTokens]);
}

function toCandidateCount({ choiceCount }: CompletionRequest, { capabilities }: UpstreamModel): number | undefined {
  if (choiceCount === undefined || choiceCount === 1) return undefined;
  if (!capabilities.multipleChoices) throw invalidField("choice_count", "must be 1 for this model");
  return choiceCount;
}

type Sampling = Pick<
  GenerationConfig,
  "temperature" | "topP" | "topK" | "seed" | "presencePenalty" | "frequencyPenalty"
>;

function toSampling(request: CompletionRequest, { capabilities }: UpstreamModel, log: TranslationLog): Sampling {
  const { sampling, temperatureWithTopP, maxTemperature, penalties } = capabilities;
  const { temperature, topP, topK, seed, presencePenalty, frequencyPenalty } = request;
  const takesTopP = sampling && (temperatureWithTopP || temperature === undefined);
  // Default values are omitted without a report.
  log.omitWhen(!sampling && temperature !== undefined && temperature !== 1, "temperature");
  log.omitWhen(!takesTopP && topP !== undefined && topP !== 1, "top_p");
  log.omitWhen(!sampling && topK !== undefined, "top_k");
  log.omitWhen(!capabilities.seed && seed !== undefined, "seed");
  log.omitWhen(!penalties && Boolean(presencePenalty), "presence_penalty");
  log.omitWhen(!penalties && Boolean(frequencyPenalty), "frequency_penalty");
  return {
    temperature:
      sampling && temperature !== undefined
        ? log.clampToRange("temperature", temperature, [0, maxTemperature])
        : undefined,
    topP: takesTopP ? topP : undefined,
    topK: sampling ? topK : undefined,
    // The provider accepts 32 bits, so the lower 32 are sent.
    seed: capabilities.seed && seed !== undefined ? Number(BigInt.asIntN(32, seed)) : undefined,
    presencePenalty: penalties ? presencePenalty : undefined,
    frequencyPenalty: penalties ? frequencyPenalty : undefined,
  };
}

function toLogprobs(
  { logprobs }: CompletionRequest,
  { capabilities }: UpstreamModel,
  log: TranslationLog,
): Pick<GenerationConfig, "responseLogprobs" | "logprobs"> {
  if (logprobs === undefined) return { responseLogprobs: undefined, logprobs: undefined };
  if (capabilities.logprobs) return { responseLogprobs: true, logprobs: logprobs.topCount || undefined };
  log.omit("logprobs");
  log.omitWhen(logprobs.topCount > 0, "logprobs.top_count");
  return { responseLogprobs: undefined, logprobs: undefined };
}

/** Restricts an image model to text unless images were requested, because it generates images by default. */
function toModalities({ modalities }: CompletionRequest, model: UpstreamModel): readonly string[] | undefined {
  if (modalities.includes(Modality.AUDIO)) throw invalidField("modalities", "this model does not answer with speech");
  if (!modalities.includes(Modality.IMAGE)) return mayDraw(model) ? ["TEXT"] : undefined;
  if (!model.outputModalities.has(Modality.IMAGE)) throw invalidField("modalities", "this model does not make images");
  // With IMAGE alone, the provider returns nothing when a text answer would fit better.
  return ["TEXT", "IMAGE"];
}

function toImageConfig(
  request: CompletionRequest,
  model: UpstreamModel,
  log: TranslationLog,
): GenerationConfig["imageConfig"] {
  const { aspectRatio = "", size = "" } = request.imageOptions ?? {};
  const taken = model.capabilities.imageOptions && request.modalities.includes(Modality.IMAGE);
  log.omitWhen(!taken && aspectRatio !== "", "image_options.aspect_ratio");
  log.omitWhen(!taken && size !== "", "image_options.size");
  log.omitWhen(request.imageOptions?.mask !== undefined, "image_options.mask");
  log.omitWhen(Boolean(request.imageOptions?.partialCount), "image_options.partial_count");
  if (!taken || (aspectRatio === "" && size === "")) return undefined;
  return { ...(aspectRatio !== "" && { aspectRatio }), ...(size !== "" && { imageSize: size }) };
}

/** Response format fields of the body, and the instruction that replaces them. */
interface ResponseFormatFields extends Pick<GenerationConfig, "responseMimeType" | "responseJsonSchema"> {
  /** System instruction for models without JSON mode or JSON schemas. */
  readonly instruction: string | undefined;
}

const FREE: ResponseFormatFields = {
  responseMimeType: undefined,
  responseJsonSchema: undefined,
  instruction: undefined,
};

const FORMAT_FIELD = "response_format.json_schema";
const SCHEMA_FIELD = `${FORMAT_FIELD}.schema_json`;

/**
 * Converts `response_format`. A model without JSON schemas gets the schema as an instruction and JSON mode. A model
 * that cannot combine tools with JSON mode gets only the instruction. A schema as an instruction is reported, because
 * it is not enforced.
 */
function toResponseFormat(request: CompletionRequest, model: UpstreamModel, log: TranslationLog): ResponseFormatFields {
  const format = request.responseFormat?.format;
  if (format?.case !== "jsonObject" && format?.case !== "jsonSchema") return FREE;
  const schema = format.case === "jsonSchema" ? readSchema(format.value) : undefined;
  const callsTools = request.tools.length > 0 && model.capabilities.tools;
  const jsonMode = checksSignatures(model) || !callsTools;
  const enforced = jsonMode && (schema === undefined || model.capabilities.jsonSchema);
  log.omitWhen(!enforced && schema !== undefined, FORMAT_FIELD);
  const responseMimeType = jsonMode ? "application/json" : undefined;
  if (!enforced) return { ...FREE, responseMimeType, instruction: inWords(schema) };
  if (schema === undefined) return { ...FREE, responseMimeType };
  const { schema: responseJsonSchema, dropped } = toAnswerSchema(schema, SCHEMA_FIELD);
  for (const field of dropped) log.omit(field);
  return { ...FREE, responseMimeType, responseJsonSchema };
}

/** Parses the schema. Undefined for an empty schema, which accepts any JSON. */
function readSchema({ schemaJson, description }: JsonSchemaFormat): JsonObject | undefined {
  if (schemaJson === "") return undefined;
  const schema = parseMeasured(schemaJson);
  if (!isObject(schema)) throw invalidField(SCHEMA_FIELD, "must be a JSON Schema object");
  if (Object.keys(schema).length === 0) return undefined;
  return description === "" || schema["description"] !== undefined ? schema : { ...schema, description };
}

function inWords(schema: JsonObject | undefined): string {
  const rule = "Answer with one JSON object and nothing else: no explanation before or after it, no code fence.";
  return schema === undefined ? rule : `${rule} It must satisfy this JSON Schema:\n${JSON.stringify(schema)}`;
}
