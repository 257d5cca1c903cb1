import { createHash } from "node:crypto";
import type { CompletionRequest, JsonSchemaFormat } from "../../../gen/parley/v1/completion_pb.js";
import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import { invalidField } from "../../core/failure.ts";
import { toolsInParts } from "../../core/native-tools.ts";
import type { TranslateOptions, Translation, UpstreamCall, UpstreamModel } from "../../core/provider.ts";
import { isObject, parseMeasured } from "../wire/json.ts";
import { toStrictSchema } from "../wire/strict-schema.ts";
import { ToolCallIds } from "../wire/tool-call-ids.ts";
import { isVerbositySet, TranslationLog } from "../wire/translation.ts";
import { longestMark, toCallersBody } from "./callers-body.ts";
import { CacheMarks, type TranslationContext } from "./cache-marks.ts";
import { toMessages } from "./messages.ts";
import { toOtherFields } from "./other-fields.ts";
import { isBlank } from "./parts.ts";
import { isReasoning, toReasoning } from "./reasoning.ts";
import { type AnthropicSite, betasOf, DIRECT } from "./site.ts";
import { toolUsesOf } from "./tool-uses.ts";
import { toTools } from "./tools.ts";
import { endsWithAssistant, hasReasoning, lacksReasoningInToolLoop, trimPrefill } from "./turns.ts";
import type { MessagesBody, TextBlock, Turn } from "./wire.ts";

/**
 * The request as the body of `POST /v1/messages`, or of its counterpart at `site`. A pure function with byte-identical results: the
 * provider's prompt cache and its check of returned reasoning depend on that. The body requests a stream in mode `stream`, and in
 * mode `whole` when the answer may be longer than `streamAbove`, because networks cut long silent calls. Throws `invalid_request`
 * for unsupported fields that must not be omitted.
 */
export function toAnthropicRequest(
  request: CompletionRequest,
  model: UpstreamModel,
  { mode, callers, site = DIRECT }: TranslateOptions & { readonly site?: AnthropicSite },
): Translation {
  const log = new TranslationLog();
  const context: TranslationContext = { request, model, log, marks: new CacheMarks(log), ids: new ToolCallIds() };
  refuseImpossible(context);

  const maxTokens =
    request.maxOutputTokens === undefined
      ? Math.min(model.defaultMaxTokens, model.maxOutputTokens)
      : log.clampToRange("max_output_tokens", request.maxOutputTokens, [1, model.maxOutputTokens]);
  const streamed = mode === "stream" || maxTokens > model.capabilities.streamAbove;
  const conversation = toMessages(context);
  const { tools, tool_choice } = toTools(context, conversation.turns);
  const { format, instruction } = toResponseFormat(context);
  const forced = tool_choice?.type === "any" || tool_choice?.type === "tool";
  const reasoning = toReasoning(context, {
    maxTokens,
    manualRefused: forced || lacksReasoningInToolLoop(conversation.turns),
    replayed: hasReasoning(conversation.turns),
  });
  const { fields, betas, billingText } = toOtherFields(request, log);
  const system = instruction === undefined ? conversation.system : [...conversation.system, instruction];
  if (billingText !== undefined) system.unshift({ type: "text", text: billingText });

  const body: MessagesBody = {
    model: model.name,
    max_tokens: maxTokens,
    stream: streamed || undefined,
    thinking: reasoning.thinking,
    output_config: reasoning.effort || format ? { effort: reasoning.effort, format } : undefined,
    ...toSampling(context, { reasoning: isReasoning(reasoning) }),
    stop_sequences: toStopSequences(context),
    metadata: toMetadata(context),
    service_tier: toServiceTier(context),
    tools,
    tool_choice,
    system: system.length > 0 ? system : undefined,
    messages: toFinalTurns(context, conversation.turns, { reasoning: isReasoning(reasoning) }),
    ...fields,
  };
  noteUnsupported(context);
  context.marks.settle(body);
  const facts = { streamed, maxTokens, tier: body.service_tier, cacheWrite: context.marks.longest, betas };
  const own = log.isComplete ? toCallersBody(callers, body) : undefined;
  const sent = site.toBody(own ?? body, betasOf(model, betas));
  const uses = toolUsesOf(own ?? body, toolsInParts(request.messages, "anthropic"));
  return own === undefined
    ? log.finish(sent, { ...facts, uses })
    : log.finish(sent, {
        ...facts,
        uses,
        cacheWrite: longestMark,
        headers: callers?.headers,
        isCallers: true,
        source: callers?.source,
      });
}

/** The turns. The last one may be the beginning of the answer (prefill), which only some models continue. */
function toFinalTurns(
  { model }: TranslationContext,
  turns: readonly Turn[],
  { reasoning }: { readonly reasoning: boolean },
): readonly Turn[] {
  if (!endsWithAssistant(turns)) return turns;
  const continued = model.capabilities.prefill && !reasoning ? trimPrefill(turns) : [];
  if (continued.length === 0) throw invalidField("messages", "must end with a user message");
  return continued;
}

/** Smallest `top_p` that the provider takes together with reasoning. */
const MIN_REASONING_TOP_P = 0.95;

/** Sampling parameters. Logs the ones that the model does not take, unless they have the default value. */
function toSampling(
  { request: { temperature, topP, topK }, model: { capabilities }, log }: TranslationContext,
  { reasoning }: { readonly reasoning: boolean },
): Pick<MessagesBody, "temperature" | "top_p" | "top_k"> {
  const takesTemperature = capabilities.sampling && !reasoning;
  const sentTemperature = takesTemperature ? temperature : undefined;
  const takesTopP =
    capabilities.sampling &&
    (capabilities.temperatureWithTopP || sentTemperature === undefined) &&
    (!reasoning || (topP ?? 1) >= MIN_REASONING_TOP_P);
  log.omitWhen(!takesTemperature && (temperature ?? 1) !== 1, "temperature");
  log.omitWhen(!takesTopP && (topP ?? 1) !== 1, "top_p");
  // A model takes `top_k` when it takes `temperature`.
  log.omitWhen(!takesTemperature && topK !== undefined, "top_k");
  const range = [0, capabilities.maxTemperature] as const;
  return {
    temperature: sentTemperature === undefined ? undefined : log.clampToRange("temperature", sentTemperature, range),
    top_p: takesTopP ? topP : undefined,
    top_k: takesTemperature ? topK : undefined,
  };
}

/** Stop sequences. Blank ones are omitted because the provider refuses them. */
function toStopSequences({ request: { stopSequences }, log }: TranslationContext): string[] | undefined {
  if (stopSequences.length === 0) return undefined;
  stopSequences.forEach((text, index) => log.omitWhen(isBlank(text), `stop_sequences[${index}]`));
  const kept = stopSequences.filter((text) => !isBlank(text));
  return kept.length > 0 ? kept : undefined;
}

/** The caller's end user. An e-mail address is sent as its hash, because the provider asks for no personal data. */
function toMetadata({ request: { endUserId, safetyIdentifier }, log }: TranslationContext): MessagesBody["metadata"] {
  const id = endUserId ?? safetyIdentifier;
  log.omitWhen(safetyIdentifier !== undefined && safetyIdentifier !== id, "safety_identifier");
  if (id === undefined || id === "") return undefined;
  return { user_id: id.includes("@") ? createHash("sha256").update(id).digest("hex") : id };
}

/** The service tier. */
function toServiceTier({ request: { serviceTier }, log }: TranslationContext): MessagesBody["service_tier"] {
  if (serviceTier === "auto") return "auto";
  if (serviceTier === "default") return "standard_only";
  log.omitWhen(serviceTier !== undefined, "service_tier");
  return undefined;
}

/** Throws `invalid_request` for several choices and for image or audio output, which the provider does not support. */
function refuseImpossible({ request: { choiceCount, modalities } }: TranslationContext): void {
  if (choiceCount !== undefined && choiceCount > 1) throw invalidField("choice_count", "must be 1 for this model");
  if (modalities.includes(Modality.IMAGE) || modalities.includes(Modality.AUDIO)) {
    throw invalidField("modalities", "this model answers with text only");
  }
}

/** Logs the parameters that the provider does not support, unless they have no effect. */
function noteUnsupported({ request, log }: TranslationContext): void {
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

/** The request's JSON format: enforced by the provider, requested by an instruction, or neither. */
interface ResponseFormatFields {
  readonly format?: { readonly type: "json_schema"; readonly schema: Record<string, unknown> };
  /** Appended to the system prompt. */
  readonly instruction?: TextBlock;
}

/**
 * Maps `response_format`. Without a JSON mode of the model it becomes an instruction. A schema or rule that is not
 * enforced is logged as omitted. Throws `invalid_request` for an invalid schema.
 */
function toResponseFormat({ request, model, log }: TranslationContext): ResponseFormatFields {
  const format = request.responseFormat?.format;
  if (format?.case !== "jsonObject" && format?.case !== "jsonSchema") return {};
  const given = format.case === "jsonSchema" ? readSchema(format.value) : undefined;
  if (given === undefined) return { instruction: { type: "text", text: JSON_ONLY } };
  if (model.capabilities.jsonSchema) {
    const { schema, unenforced } = toStrictSchema(given, SCHEMA_FIELD);
    for (const field of unenforced) log.omit(field);
    return { format: { type: "json_schema", schema } };
  }
  log.omit(FORMAT_FIELD);
  return {
    instruction: { type: "text", text: `${JSON_ONLY} It satisfies this JSON schema:\n${JSON.stringify(given)}` },
  };
}

/** Undefined without a schema: any JSON is valid. */
function readSchema({ schemaJson, description }: JsonSchemaFormat): Record<string, unknown> | undefined {
  if (schemaJson === "") return undefined;
  const schema = parseMeasured(schemaJson);
  if (!isObject(schema)) throw invalidField(SCHEMA_FIELD, "must be a JSON schema");
  return description === "" || schema["description"] !== undefined ? schema : { ...schema, description };
}

/** Fields of a request that `count_tokens` takes; it refuses all others. Source: `MessageCountTokensParams` of the official SDK. */
const COUNTED = ["model", "messages", "system", "tools", "tool_choice", "thinking", "output_config"] as const;

/** The body of `count_tokens` for a translated request. */
export function toCountBody({ model, translation }: UpstreamCall, site: AnthropicSite): Buffer {
  const request = { ...(JSON.parse(translation.body.toString()) as Record<string, unknown>), model: model.name };
  const counted = Object.fromEntries(COUNTED.map((name) => [name, request[name as keyof typeof request]]));
  return Buffer.from(JSON.stringify(site.toCountBody(counted)));
}
