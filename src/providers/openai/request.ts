import { type CompletionRequest, type ResponseFormat, Verbosity } from "../../../gen/parley/v1/completion_pb.js";
import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import { invalidField } from "../../core/failure.ts";
import { mayDraw } from "../../core/model.ts";
import { toolsInParts } from "../../core/native-tools.ts";
import type { Capabilities, TranslateOptions, Translation, UpstreamModel } from "../../core/provider.ts";
import { MADE_PICTURE_TOKENS } from "../wire/openai-content.ts";
import { toEffort } from "../wire/reasoning.ts";
import { enumWord, readObject, TranslationLog } from "../wire/translation.ts";
import { inCallersWords } from "./callers-body.ts";
import { toMessages } from "./messages.ts";
import { toolUsesOf } from "./tool-uses.ts";
import { toTools } from "./tools.ts";
import type { OpenAiMessage, OpenAiRequest, OpenAiResponseFormat } from "./wire.ts";

/**
 * Converts a request to an OpenAI chat completion. Most fields pass through; fields that the model does not support are
 * omitted and reported. A caller's body in this dialect keeps its form (`callers-body.ts`). A whole answer above `streamAbove` is
 * requested as a stream. Throws `invalid_request` for unsupported features that must not be omitted.
 */
export function toOpenAiRequest(
  request: CompletionRequest,
  model: UpstreamModel,
  { mode, callers, others = false }: TranslateOptions,
): Translation {
  const { capabilities } = model;
  const log = new TranslationLog();
  const form = toResponseFormat(request.responseFormat, capabilities, log);
  const messages = toMessages(request.messages, model, log);
  const maxTokens =
    request.maxOutputTokens === undefined
      ? undefined
      : log.clampToRange("max_output_tokens", request.maxOutputTokens, [1, model.maxOutputTokens]);
  const streamed = mode === "stream" || (maxTokens ?? model.defaultMaxTokens) > capabilities.streamAbove;
  const body: OpenAiRequest = {
    model: model.name,
    messages: form.instruction === undefined ? messages : instruct(messages, form.instruction),
    stream: streamed ? true : undefined,
    stream_options: streamed && capabilities.streamUsage ? { include_usage: true } : undefined,
    [capabilities.maxTokensField]: maxTokens,
    ...toSamplingFields(request, capabilities, log),
    ...toLogprobsFields(request, capabilities, log),
    ...toTools(request, model, log),
    n: toChoiceCount(request, capabilities),
    stop: request.stopSequences.length > 0 ? request.stopSequences : undefined,
    response_format: form.format,
    reasoning_effort: toEffort(request, capabilities, log),
    ...toModalityFields(request, model, log),
    ...toPassedFields(request, log),
  };
  const own = inCallersWords(body, { callers, others: others && log.isComplete, can: capabilities });
  return log.finish(own?.body ?? body, {
    source: own && callers?.source,
    isCallers: own?.isWhole,
    verbatim: own?.hasMore === true,
    streamed,
    maxTokens,
    // Servers of this dialect do not document whether the limit applies to pictures, and some make pictures without being asked.
    pictureTokens: mayDraw(model) ? MADE_PICTURE_TOKENS : undefined,
    tier: body.service_tier,
    searches: body.web_search_options !== undefined,
    uses: toolUsesOf(body, toolsInParts(request.messages, "openai")),
    // Some servers always write caches, and native parts may have cache marks.
    cacheWrite: (json) => (json.includes("cache_control") ? "hour" : "minutes"),
  });
}

type Fields<K extends keyof OpenAiRequest> = Pick<OpenAiRequest, K>;

/** Default values of sampling parameters: omitting them for models without sampling is not reported. */
function toSamplingFields(
  request: CompletionRequest,
  can: Capabilities,
  log: TranslationLog,
): Fields<"temperature" | "top_p" | "frequency_penalty" | "presence_penalty" | "seed" | "logit_bias"> {
  const { temperature, topP, topK, frequencyPenalty, presencePenalty, seed, logitBias } = request;
  const nucleus = can.sampling && (can.temperatureWithTopP || temperature === undefined);
  log.omitWhen(!can.sampling && temperature !== undefined && temperature !== 1, "temperature");
  log.omitWhen(!nucleus && topP !== undefined && topP !== 1, "top_p");
  log.omitWhen(topK !== undefined, "top_k");
  log.omitWhen(!can.penalties && Boolean(frequencyPenalty), "frequency_penalty");
  log.omitWhen(!can.penalties && Boolean(presencePenalty), "presence_penalty");
  log.omitWhen(!can.seed && seed !== undefined, "seed");
  return {
    temperature:
      can.sampling && temperature !== undefined
        ? log.clampToRange("temperature", temperature, [0, can.maxTemperature])
        : undefined,
    top_p: nucleus ? topP : undefined,
    frequency_penalty: can.penalties ? frequencyPenalty : undefined,
    presence_penalty: can.penalties ? presencePenalty : undefined,
    // JSON numbers are exact to 53 bits: a larger seed is reduced deterministically.
    seed: can.seed && seed !== undefined ? Number(BigInt.asIntN(54, seed)) : undefined,
    logit_bias: Object.keys(logitBias).length > 0 ? logitBias : undefined,
  };
}

function toLogprobsFields(
  { logprobs }: CompletionRequest,
  can: Capabilities,
  log: TranslationLog,
): Fields<"logprobs" | "top_logprobs"> {
  if (logprobs === undefined) return {};
  if (can.logprobs) return { logprobs: true, top_logprobs: logprobs.topCount || undefined };
  log.omit("logprobs");
  log.omitWhen(logprobs.topCount > 0, "logprobs.top_count");
  return {};
}

function toChoiceCount({ choiceCount }: CompletionRequest, can: Capabilities): number | undefined {
  if (choiceCount === undefined || choiceCount === 1) return undefined;
  if (!can.multipleChoices) throw invalidField("choice_count", "must be 1 for this model");
  return choiceCount;
}

function toModalityFields(
  { modalities, audioOptions, imageOptions }: CompletionRequest,
  { outputModalities, capabilities }: UpstreamModel,
  log: TranslationLog,
): Fields<"modalities" | "audio" | "image_config"> {
  const wanted = modalities.filter((modality) => modality !== Modality.UNSPECIFIED);
  const missing = wanted.find((modality) => modality !== Modality.TEXT && !outputModalities.has(modality));
  if (missing !== undefined)
    throw invalidField("modalities", `this model does not make ${enumWord(Modality, missing) ?? "this"}`);
  const speaks = wanted.includes(Modality.AUDIO);
  log.omitWhen(audioOptions !== undefined && !speaks, "audio_options");
  const { aspectRatio = "", size = "" } = imageOptions ?? {};
  log.omitWhen(!capabilities.imageOptions && aspectRatio !== "", "image_options.aspect_ratio");
  log.omitWhen(!capabilities.imageOptions && size !== "", "image_options.size");
  log.omitWhen(imageOptions?.mask !== undefined, "image_options.mask");
  log.omitWhen(Boolean(imageOptions?.partialCount), "image_options.partial_count");
  return {
    modalities: wanted.some((modality) => modality !== Modality.TEXT)
      ? wanted.map((modality) => enumWord(Modality, modality) ?? "")
      : undefined,
    audio:
      audioOptions !== undefined && speaks ? { format: audioOptions.format, voice: audioOptions.voice } : undefined,
    image_config:
      capabilities.imageOptions && (aspectRatio !== "" || size !== "")
        ? { aspect_ratio: aspectRatio || undefined, image_size: size || undefined }
        : undefined,
  };
}

/** Fields accepted from `provider_options_json`; others are ignored, so that it cannot replace fields of the contract. */
const OPTIONS = ["moderation", "prompt_cache_options", "prompt_cache_retention", "web_search_options"] as const;
const KNOWN_OPTIONS: ReadonlySet<string> = new Set(OPTIONS.map((name) => `openai.${name}`));

/** Fields that pass through unchanged. */
function toPassedFields(
  request: CompletionRequest,
  log: TranslationLog,
): Fields<
  | "user"
  | "safety_identifier"
  | "metadata"
  | "service_tier"
  | "store"
  | "verbosity"
  | "prediction"
  | "prompt_cache_key"
  | (typeof OPTIONS)[number]
> {
  const { prediction, metadata, providerOptionsJson } = request;
  return {
    user: request.endUserId,
    safety_identifier: request.safetyIdentifier,
    metadata: Object.keys(metadata).length > 0 ? metadata : undefined,
    service_tier: request.serviceTier,
    // False is the default, and many servers do not support the field.
    store: request.store === true ? true : undefined,
    verbosity: enumWord(Verbosity, request.verbosity),
    prediction: prediction === undefined ? undefined : { type: "content", content: prediction },
    prompt_cache_key: request.promptCacheKey ?? request.sessionId,
    ...toOptions(providerOptionsJson, log),
  };
}

function toOptions(
  given: CompletionRequest["providerOptionsJson"],
  log: TranslationLog,
): Fields<(typeof OPTIONS)[number]> {
  const fields: Record<string, unknown> = {};
  for (const name in given) {
    const path = `provider_options_json.${name}`;
    if (!KNOWN_OPTIONS.has(name)) {
      log.omit(path);
      continue;
    }
    const value = log.verbatim(given[name]!);
    if (value === undefined) throw invalidField(path, "must be JSON");
    fields[name.slice("openai.".length)] = value;
  }
  return fields;
}

/** Response format: a field of the request, and an instruction for models that do not enforce it. */
interface ResponseFormatFields {
  readonly format: OpenAiResponseFormat | undefined;
  readonly instruction: string | undefined;
}

/**
 * Converts the response format. For a model without structured output it becomes a JSON object with the schema as an
 * instruction, and `response_format.json_schema` is reported as omitted. Throws `invalid_request` for a schema that is not an
 * object.
 */
function toResponseFormat(
  responseFormat: ResponseFormat | undefined,
  { jsonSchema }: Capabilities,
  log: TranslationLog,
): ResponseFormatFields {
  const form = responseFormat?.format;
  if (form?.case === "jsonObject") return { format: { type: "json_object" }, instruction: undefined };
  if (form?.case !== "jsonSchema") return { format: undefined, instruction: undefined };
  const { name, description, schemaJson, strict } = form.value;
  const schema = schemaJson === "" ? undefined : readObject(schemaJson, "response_format.json_schema.schema_json");
  if (jsonSchema) {
    const format = { name, description: description || undefined, schema, strict };
    return { format: { type: "json_schema", json_schema: format }, instruction: undefined };
  }
  log.omit("response_format.json_schema");
  const purpose = description === "" ? "" : ` It is: ${description}`;
  const rule =
    schema === undefined ? "a JSON object" : `a JSON object that satisfies this JSON Schema: ${JSON.stringify(schema)}`;
  return { format: { type: "json_object" }, instruction: `Answer only with ${rule}.${purpose}` };
}

/** Appends `instruction` to the leading system message; adds one if there is none. */
function instruct(messages: readonly OpenAiMessage[], instruction: string): OpenAiMessage[] {
  const [first, ...rest] = messages;
  if (first?.role !== "system") return [{ role: "system", content: instruction }, ...messages];
  const content =
    typeof first.content === "string"
      ? `${first.content}\n\n${instruction}`
      : [...first.content, { type: "text" as const, text: instruction }];
  return [{ ...first, content }, ...rest];
}
