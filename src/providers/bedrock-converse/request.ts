import type { CompletionRequest, JsonSchemaFormat } from "../../../gen/parley/v1/completion_pb.js";
import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import { invalidField } from "../../core/failure.ts";
import type { TranslateOptions, Translation, UpstreamModel } from "../../core/provider.ts";
import { isObject, parseMeasured } from "../wire/json.ts";
import { toStrictSchema } from "../wire/strict-schema.ts";
import { ToolCallIds } from "../wire/tool-call-ids.ts";
import { isVerbositySet, TranslationLog } from "../wire/translation.ts";
import { CacheMarks, type TranslationContext } from "./cache-marks.ts";
import { DocumentNames } from "./documents.ts";
import { toMessages } from "./messages.ts";
import { toReasoning } from "./reasoning.ts";
import { toTools } from "./tools.ts";
import { lacksReasoningInToolLoop, trimPrefill } from "./turns.ts";
import type { ConverseBody, Turn } from "./wire.ts";

/**
 * The request as the body of `POST /model/{modelId}/converse` and `…/converse-stream`, which take the same body. A pure function.
 * Throws `invalid_request` for unsupported fields that must not be omitted.
 */
export function toConverseRequest(
  request: CompletionRequest,
  model: UpstreamModel,
  { mode }: TranslateOptions,
): Translation {
  const log = new TranslationLog();
  const { capabilities } = model;
  const context: TranslationContext = {
    request,
    model,
    log,
    marks: new CacheMarks(log, capabilities.cachePoints),
    ids: new ToolCallIds(),
    documents: new DocumentNames(),
  };
  refuseImpossible(request);

  const asked =
    request.maxOutputTokens === undefined
      ? undefined
      : log.clampToRange("max_output_tokens", request.maxOutputTokens, [1, model.maxOutputTokens]);
  const limit = asked ?? Math.min(model.defaultMaxTokens, model.maxOutputTokens);
  const { system, turns } = toMessages(context);
  const { tools, toolChoice } = toTools(context, turns);
  const { textFormat, instruction } = toResponseFormat(context);
  const manualRefused = toolChoice !== undefined || lacksReasoningInToolLoop(turns);
  const reasoning = toReasoning(context, { maxTokens: limit, manualRefused });
  // Most models have a default token limit. A request with a thinking budget needs an explicit limit above the budget.
  const maxTokens = asked ?? (reasoning.fields.thinking?.type === "enabled" ? limit : undefined);
  if (instruction !== undefined) system.push({ text: instruction });
  const { temperature, topP, topK } = toSampling(context, reasoning);
  const messages = toFinalTurns(turns, capabilities.prefill && !reasoning.thinks);
  const stopSequences = request.stopSequences.length > 0 ? request.stopSequences : undefined;
  const tier = toServiceTier(context);
  noteUnsupported(request, log);

  const { marks } = context;
  marks.settle([...tools, ...system, ...messages.flatMap(({ content }) => content)]);
  const body: ConverseBody = {
    system: system.length > 0 ? marks.withPoints(system) : undefined,
    messages: messages.map(({ role, content }) => ({ role, content: marks.withPoints(content) })),
    inferenceConfig: ifAny({ maxTokens, temperature, topP, stopSequences }),
    toolConfig: tools.length > 0 ? { tools: marks.withPoints(tools), toolChoice } : undefined,
    outputConfig: ifAny({ textFormat, effort: reasoning.effort }),
    additionalModelRequestFields: ifAny({ ...reasoning.fields, top_k: topK }),
    // Models that do not report the matched stop sequence ignore this field.
    additionalModelResponseFieldPaths: stopSequences && ["/stop_sequence"],
    serviceTier: tier === undefined ? undefined : { type: tier },
  };
  const streamed = mode === "stream" || limit > capabilities.streamAbove;
  return log.finish(body, { streamed, maxTokens, tier, cacheWrite: marks.longest });
}

/** The fields, if any of them is set. */
function ifAny<T extends object>(fields: T): T | undefined {
  return Object.values(fields).some((value) => value !== undefined) ? fields : undefined;
}

/** The turns. The last one may be the beginning of the answer (prefill), which only some models continue. */
function toFinalTurns(turns: readonly Turn[], continues: boolean): readonly Turn[] {
  if (turns.at(-1)?.role !== "assistant") return turns;
  const continued = continues ? trimPrefill(turns) : [];
  if (continued.length === 0) throw invalidField("messages", "must end with a user message");
  return continued;
}

/** Smallest `topP` that a model takes while it thinks. */
const MIN_THINKING_TOP_P = 0.95;

/** Sampling parameters. Logs the ones that the model does not take, unless they have the default value. */
function toSampling(
  { request: { temperature, topP, topK }, model: { capabilities }, log }: TranslationContext,
  { thinks }: { readonly thinks: boolean },
): Pick<CompletionRequest, "temperature" | "topP" | "topK"> {
  const takesTemperature = capabilities.sampling && !thinks;
  const sentTemperature = takesTemperature ? temperature : undefined;
  const takesTopP =
    capabilities.sampling &&
    (capabilities.temperatureWithTopP || sentTemperature === undefined) &&
    (!thinks || (topP ?? 1) >= MIN_THINKING_TOP_P);
  // Converse has no field for `top_k`. Models that think in blocks take it as a model field of the same name.
  const takesTopK = takesTemperature && (capabilities.reasoning === "budget" || capabilities.reasoning === "adaptive");
  log.omitWhen(!takesTemperature && (temperature ?? 1) !== 1, "temperature");
  log.omitWhen(!takesTopP && (topP ?? 1) !== 1, "top_p");
  log.omitWhen(!takesTopK && topK !== undefined, "top_k");
  const range = [0, capabilities.maxTemperature] as const;
  return {
    ...(sentTemperature !== undefined && { temperature: log.clampToRange("temperature", sentTemperature, range) }),
    ...(takesTopP && topP !== undefined && { topP }),
    ...(takesTopK && topK !== undefined && { topK }),
  };
}

const TIERS: ReadonlySet<string> = new Set(["default", "flex", "priority"]);

/** The service tier; `auto` is the provider's default. */
function toServiceTier({ request: { serviceTier }, log }: TranslationContext): string | undefined {
  if (serviceTier === undefined || serviceTier === "auto") return undefined;
  if (TIERS.has(serviceTier)) return serviceTier;
  log.omit("service_tier");
  return undefined;
}

/** Throws `invalid_request` for several choices and for image or audio output. */
function refuseImpossible({ choiceCount, modalities }: CompletionRequest): void {
  if (choiceCount !== undefined && choiceCount > 1) throw invalidField("choice_count", "must be 1 for this model");
  if (modalities.includes(Modality.IMAGE) || modalities.includes(Modality.AUDIO))
    throw invalidField("modalities", "this model answers with text only");
}

/** Logs the parameters that the provider does not support, unless they have no effect. */
function noteUnsupported(request: CompletionRequest, log: TranslationLog): void {
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
  log.omitWhen(Boolean(request.endUserId), "end_user_id");
  log.omitWhen(Boolean(request.safetyIdentifier), "safety_identifier");
  for (const name of Object.keys(request.providerOptionsJson).toSorted()) log.omit(`provider_options_json.${name}`);
}

const FORMAT_FIELD = "response_format.json_schema";
const SCHEMA_FIELD = `${FORMAT_FIELD}.schema_json`;

const JSON_ONLY =
  "Answer with exactly one JSON object and nothing else: no introduction, no explanation, no code fence around it.";

/** The request's JSON format: enforced by the provider, requested by an instruction, or neither. */
interface ResponseFormatFields {
  readonly textFormat?: NonNullable<ConverseBody["outputConfig"]>["textFormat"];
  /** Appended to the system prompt. */
  readonly instruction?: string;
}

/**
 * Maps `response_format`. The provider has no JSON mode without a schema, so JSON alone becomes an instruction. A schema or rule that
 * is not enforced is logged as omitted. Throws `invalid_request` for an invalid schema.
 */
function toResponseFormat({ request, model, log }: TranslationContext): ResponseFormatFields {
  const format = request.responseFormat?.format;
  if (format?.case !== "jsonObject" && format?.case !== "jsonSchema") return {};
  const given = format.case === "jsonSchema" ? readSchema(format.value) : undefined;
  if (given === undefined || format.case === "jsonObject") return { instruction: JSON_ONLY };
  if (!model.capabilities.jsonSchema) {
    log.omit(FORMAT_FIELD);
    return { instruction: `${JSON_ONLY} It satisfies this JSON schema:\n${JSON.stringify(given)}` };
  }
  const { schema, unenforced } = toStrictSchema(given, SCHEMA_FIELD);
  for (const field of unenforced) log.omit(field);
  const name = format.value.name === "" ? undefined : format.value.name;
  return {
    textFormat: { type: "json_schema", structure: { jsonSchema: { schema: JSON.stringify(schema), name } } },
  };
}

/** Undefined without a schema: any JSON is valid. */
function readSchema({ schemaJson, description }: JsonSchemaFormat): Record<string, unknown> | undefined {
  if (schemaJson === "") return undefined;
  const schema = parseMeasured(schemaJson);
  if (!isObject(schema)) throw invalidField(SCHEMA_FIELD, "must be a JSON schema");
  return description === "" || schema["description"] !== undefined ? schema : { ...schema, description };
}

/** Fields of a request that a count takes. Source: `ConverseTokensRequest` of the AWS SDK. */
const COUNTED = ["messages", "system", "toolConfig", "additionalModelRequestFields"] as const;

/** The body of `POST /model/{modelId}/count-tokens` for a translated request. */
export function toCountBody(body: Buffer): Buffer {
  const request = JSON.parse(body.toString()) as Record<string, unknown>;
  const converse = Object.fromEntries(COUNTED.map((name) => [name, request[name]]));
  return Buffer.from(JSON.stringify({ input: { converse } }));
}
