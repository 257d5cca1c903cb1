import { type CompletionRequest, Verbosity } from "../../../gen/parley/v1/completion_pb.js";
import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import { invalidField } from "../../core/failure.ts";
import { mayDraw } from "../../core/model.ts";
import { toolsInParts } from "../../core/native-tools.ts";
import type { Capabilities, TranslateOptions, Translation, UpstreamModel } from "../../core/provider.ts";
import { MADE_PICTURE_TOKENS } from "../wire/openai-content.ts";
import {
  toImageConfig,
  toPassedFields,
  toPriceFactor,
  toResponseFormat,
  toSampling,
  wantedModalities,
} from "../wire/openai-request.ts";
import { toEffort } from "../wire/reasoning.ts";
import { enumWord, TranslationLog } from "../wire/translation.ts";
import { inCallersWords } from "./callers-body.ts";
import { toMessages } from "./messages.ts";
import { toolUsesOf } from "./tool-uses.ts";
import { toTools } from "./tools.ts";
import type { OpenAiMessage, OpenAiRequest } from "./wire.ts";

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
  const form = toResponseFormat(request.responseFormat, { can: capabilities, log }, (json_schema) => ({
    type: "json_schema" as const,
    json_schema,
  }));
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
    ...toPassedFields(request, OPTIONS, log),
    // False is the default, and many servers do not support the field.
    store: request.store === true ? true : undefined,
    verbosity: enumWord(Verbosity, request.verbosity),
    prediction: request.prediction === undefined ? undefined : { type: "content", content: request.prediction },
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
    priceFactor: toPriceFactor(body.service_tier),
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
  const { frequencyPenalty, presencePenalty, seed, logitBias } = request;
  const sampling = toSampling(request, can, log);
  log.omitWhen(!can.penalties && Boolean(frequencyPenalty), "frequency_penalty");
  log.omitWhen(!can.penalties && Boolean(presencePenalty), "presence_penalty");
  log.omitWhen(!can.seed && seed !== undefined, "seed");
  return {
    ...sampling,
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
  request: CompletionRequest,
  { outputModalities, capabilities }: UpstreamModel,
  log: TranslationLog,
): Fields<"modalities" | "audio" | "image_config"> {
  const { audioOptions } = request;
  const wanted = wantedModalities(request, outputModalities);
  const speaks = wanted.includes(Modality.AUDIO);
  const imageConfig = toImageConfig(request, capabilities, log);
  log.omitWhen(Boolean(request.imageOptions?.partialCount), "image_options.partial_count");
  return {
    modalities: wanted.some((modality) => modality !== Modality.TEXT)
      ? wanted.map((modality) => enumWord(Modality, modality) ?? "")
      : undefined,
    audio:
      audioOptions !== undefined && speaks ? { format: audioOptions.format, voice: audioOptions.voice } : undefined,
    image_config: imageConfig,
  };
}

/** Fields accepted from `provider_options_json`. */
const OPTIONS = ["moderation", "prompt_cache_options", "prompt_cache_retention", "web_search_options"] as const;

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
