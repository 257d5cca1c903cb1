import { type CompletionRequest, type JsonSchemaFormat, Modality } from "../../../gen/parley/v1/completion_pb.js";
import { invalidField } from "../../core/failure.ts";
import type { Translation, UpstreamModel } from "../../core/provider.ts";
import { isObject, parsed } from "../wire/json.ts";
import { TranslationLog } from "../wire/translation.ts";
import { toMessages } from "./messages.ts";
import { toReasoning } from "./reasoning.ts";
import { toAnswerSchema } from "./schema.ts";
import { checksSignatures } from "./signature.ts";
import { toTools } from "./tools.ts";
import type { GenerateContentRequest, GenerationConfig, JsonObject, SystemInstruction } from "./wire.ts";

/**
 * The request as a `generateContent` body: a pure function. The body is the same for both modes; a whole answer is
 * streamed when its token limit, or the model's default one where the request has none, is above `streamAbove`.
 *
 * Throws `invalid_request` for unsupported features that must not be omitted; other unsupported fields are reported.
 */
export function toGeminiRequest(
  request: CompletionRequest,
  model: UpstreamModel,
  mode: "whole" | "stream",
): Translation {
  const log = new TranslationLog();
  const { systemInstruction, contents } = toMessages(request.messages, { model, log });
  const { instruction, ...form } = toResponseFormat(request, model, log);
  const body: GenerateContentRequest = {
    systemInstruction: instruct(systemInstruction, instruction),
    contents,
    ...toTools(request, model, log),
    generationConfig: toGenerationConfig(request, { model, form }, log),
    serviceTier: toServiceTier(request, log),
  };
  omitForeign(request, log);
  const limit = Math.min(request.maxTokens ?? model.defaultMaxTokens, model.maxOutputTokens);
  return log.finish(body, {
    streamed: mode === "stream" || limit > model.capabilities.streamAbove,
    maxTokens: body.generationConfig?.maxOutputTokens,
    tier: body.serviceTier,
  });
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

/** Reports fields without a counterpart at the provider. */
function omitForeign(request: CompletionRequest, log: TranslationLog): void {
  log.omitWhen(Object.keys(request.logitBias).length > 0, "logit_bias");
  log.omitWhen(request.audioOptions !== undefined, "audio");
  log.omitWhen(request.user !== undefined, "user");
  log.omitWhen(request.safetyIdentifier !== undefined, "safety_identifier");
  log.omitWhen(Object.keys(request.metadata).length > 0, "metadata");
  log.omitWhen(request.store === true, "store");
  log.omitWhen(request.verbosity !== undefined && request.verbosity !== "medium", "verbosity");
  log.omitWhen(request.prediction !== undefined, "prediction");
  log.omitWhen(request.promptCacheKey !== undefined, "prompt_cache_key");
  for (const name of Object.keys(request.openaiOptionsJson)) log.omit(name);
  omitOfMessages(request, log);
  request.tools.forEach(({ cacheMark }, index) =>
    log.omitWhen(cacheMark !== undefined, `tools[${index}].cache_control`),
  );
}

/** Reports speaker and document names, cache marks (prefixes are cached automatically) and image detail. */
function omitOfMessages({ messages }: CompletionRequest, log: TranslationLog): void {
  messages.forEach(({ name, content, cacheMark }, index) => {
    const field = `messages[${index}]`;
    if (name) log.omit(`${field}.name`);
    if (cacheMark !== undefined) log.omit(`${field}.cache_control`);
    content.forEach(({ content: part, cacheMark: partMark }, position) => {
      const asked = part.case === "image" && part.value.detail !== "" && part.value.detail !== "auto";
      if (asked) log.omit(`${field}.content[${position}].image_url.detail`);
      if (part.case === "file" && part.value.name !== "") log.omit(`${field}.content[${position}].file.filename`);
      if (partMark !== undefined) log.omit(`${field}.content[${position}].cache_control`);
    });
  });
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
    stopSequences: request.stop.length > 0 ? request.stop : undefined,
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
  { maxTokens }: CompletionRequest,
  model: UpstreamModel,
  log: TranslationLog,
): number | undefined {
  return maxTokens === undefined ? undefined : log.clamp("max_tokens", maxTokens, [1, model.maxOutputTokens]);
}

function toCandidateCount({ n }: CompletionRequest, { capabilities }: UpstreamModel): number | undefined {
  if (n === undefined || n === 1) return undefined;
  if (!capabilities.multipleChoices) throw invalidField("n", "must be 1 for this model");
  return n;
}

type Sampling = Pick<GenerationConfig, "temperature" | "topP" | "seed" | "presencePenalty" | "frequencyPenalty">;

function toSampling(request: CompletionRequest, { capabilities }: UpstreamModel, log: TranslationLog): Sampling {
  const { sampling, temperatureWithTopP, maxTemperature, penalties } = capabilities;
  const { temperature, topP, seed, presencePenalty, frequencyPenalty } = request;
  const takesTopP = sampling && (temperatureWithTopP || temperature === undefined);
  // Default values need no report.
  log.omitWhen(!sampling && temperature !== undefined && temperature !== 1, "temperature");
  log.omitWhen(!takesTopP && topP !== undefined && topP !== 1, "top_p");
  log.omitWhen(!capabilities.seed && seed !== undefined, "seed");
  log.omitWhen(!penalties && Boolean(presencePenalty), "presence_penalty");
  log.omitWhen(!penalties && Boolean(frequencyPenalty), "frequency_penalty");
  return {
    temperature:
      sampling && temperature !== undefined ? log.clamp("temperature", temperature, [0, maxTemperature]) : undefined,
    topP: takesTopP ? topP : undefined,
    // The provider accepts 32 bits: the lower ones are used.
    seed: capabilities.seed && seed !== undefined ? Number(BigInt.asIntN(32, seed)) : undefined,
    presencePenalty: penalties ? presencePenalty : undefined,
    frequencyPenalty: penalties ? frequencyPenalty : undefined,
  };
}

function toLogprobs(
  { logprobs, topLogprobs }: CompletionRequest,
  { capabilities }: UpstreamModel,
  log: TranslationLog,
): Pick<GenerationConfig, "responseLogprobs" | "logprobs"> {
  const asked = logprobs === true;
  const taken = asked && capabilities.logprobs;
  log.omitWhen(asked && !taken, "logprobs");
  log.omitWhen(asked && !taken && Boolean(topLogprobs), "top_logprobs");
  return { responseLogprobs: taken ? true : undefined, logprobs: taken ? topLogprobs : undefined };
}

/** Restricts an image model to text unless images were requested: by default it generates images. */
function toModalities(
  { modalities }: CompletionRequest,
  { outputModalities }: UpstreamModel,
): readonly string[] | undefined {
  if (modalities.includes(Modality.AUDIO)) throw invalidField("modalities", "this model does not answer with speech");
  const makesImages = outputModalities.has(Modality.IMAGE);
  if (!modalities.includes(Modality.IMAGE)) return makesImages ? ["TEXT"] : undefined;
  if (!makesImages) throw invalidField("modalities", "this model does not make images");
  // With images only, the provider returns nothing when a text answer would fit better.
  return ["TEXT", "IMAGE"];
}

function toImageConfig(
  request: CompletionRequest,
  model: UpstreamModel,
  log: TranslationLog,
): GenerationConfig["imageConfig"] {
  const { aspectRatio = "", size = "" } = request.imageOptions ?? {};
  const taken = model.capabilities.imageOptions && request.modalities.includes(Modality.IMAGE);
  log.omitWhen(!taken && aspectRatio !== "", "image_config.aspect_ratio");
  log.omitWhen(!taken && size !== "", "image_config.image_size");
  if (!taken || (aspectRatio === "" && size === "")) return undefined;
  return { ...(aspectRatio !== "" && { aspectRatio }), ...(size !== "" && { imageSize: size }) };
}

/** Response format of the provider. */
interface ResponseFormatFields extends Pick<GenerationConfig, "responseMimeType" | "responseJsonSchema"> {
  /** Instruction for models without the mode. */
  readonly instruction: string | undefined;
}

const FREE: ResponseFormatFields = {
  responseMimeType: undefined,
  responseJsonSchema: undefined,
  instruction: undefined,
};

const FORMAT_FIELD = "response_format.json_schema";
const SCHEMA_FIELD = `${FORMAT_FIELD}.schema`;

/**
 * Converts `response_format`. A model without JSON schemas gets the schema as an instruction and JSON mode; one that cannot
 * combine tools with JSON mode gets the instruction only. A schema as an instruction is reported, because it is not enforced.
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

/** Undefined for an empty schema, which any JSON matches. */
function readSchema({ schemaJson, description }: JsonSchemaFormat): JsonObject | undefined {
  if (schemaJson === "") return undefined;
  const schema = parsed(schemaJson);
  if (!isObject(schema)) throw invalidField(SCHEMA_FIELD, "must be a JSON Schema object");
  if (Object.keys(schema).length === 0) return undefined;
  return description === "" || schema["description"] !== undefined ? schema : { ...schema, description };
}

function inWords(schema: JsonObject | undefined): string {
  const rule = "Answer with one JSON object and nothing else: no explanation before or after it, no code fence.";
  return schema === undefined ? rule : `${rule} It must satisfy this JSON Schema:\n${JSON.stringify(schema)}`;
}
