import { type CompletionRequest, Verbosity } from "../../../gen/parley/v1/completion_pb.js";
import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import { invalidField } from "../../core/failure.ts";
import { mayDraw } from "../../core/model.ts";
import { makesPictures, toolsInParts, toolsWithin } from "../../core/native-tools.ts";
import type { Capabilities, TranslateOptions, Translation, UpstreamModel } from "../../core/provider.ts";
import { MADE_PICTURE_TOKENS } from "../wire/openai-content.ts";
import {
  notMade,
  toImageConfig,
  toPassedFields,
  toPriceFactor,
  toResponseFormat,
  toSampling,
  wantedModalities,
} from "../wire/openai-request.ts";
import { toEffort } from "../wire/reasoning.ts";
import { enumWord, TranslationLog } from "../wire/translation.ts";
import { toCallersBody } from "./callers-body.ts";
import { isSystem, toContents, toItems } from "./messages.ts";
import { DIALECT } from "./parts.ts";
import { toolUsesOf } from "./tool-uses.ts";
import { toTools } from "./tools.ts";
import type { InputItem, ResponsesBody } from "./wire.ts";

/** Lowest limit of output tokens that OpenAI accepts. */
const MIN_OUTPUT_TOKENS = 16;

/**
 * Converts a request to the body of `POST /responses`. The provider stores nothing unless the request asks for it, so the caller sends
 * encrypted reasoning back. Unsupported fields are omitted and reported. A whole answer above `streamAbove` is requested as a stream.
 * Throws `invalid_request` for unsupported features that must not be omitted.
 */
export function toResponsesRequest(
  request: CompletionRequest,
  model: UpstreamModel,
  { mode, callers, capped = false }: TranslateOptions,
): Translation {
  const { capabilities } = model;
  const log = new TranslationLog();
  if ((request.choiceCount ?? 1) > 1) throw invalidField("choice_count", "must be 1 for this model");
  const { format, instruction } = toResponseFormat(
    request.responseFormat,
    { can: capabilities, log },
    ({ schema = { type: "object" }, ...named }) => ({ type: "json_schema" as const, ...named, schema }),
  );
  const items = toItems(request.messages, model, log);
  const conversation = toConversation(items, { instruction, isJsonObject: format?.type === "json_object" });
  const maxTokens =
    request.maxOutputTokens === undefined
      ? undefined
      : log.clampToRange("max_output_tokens", request.maxOutputTokens, [
          Math.min(MIN_OUTPUT_TOKENS, model.maxOutputTokens),
          model.maxOutputTokens,
        ]);
  const streamed = mode === "stream" || (maxTokens ?? model.defaultMaxTokens) > capabilities.streamAbove;
  const verbosity = enumWord(Verbosity, request.verbosity);
  const partialCount = mode === "stream" ? (request.imageOptions?.partialCount ?? 0) : 0;
  const tools = withImages(toTools(request, model, log), { request, model, partialCount });
  const native = [...toolsWithin({ tools: tools.tools }), ...toolsInParts(request.messages, DIALECT)];
  const draws = native.some(makesPictures);
  const body: ResponsesBody = {
    model: model.name,
    ...conversation,
    stream: streamed ? true : undefined,
    store: request.store === true,
    include: toIncluded(request, capabilities),
    max_output_tokens: maxTokens,
    ...toSamplingFields(request, capabilities, log),
    ...tools,
    max_tool_calls: draws && capped ? 1 : undefined,
    text: format === undefined && verbosity === undefined ? undefined : { format, verbosity },
    reasoning: toReasoning(request, capabilities, log),
    image_config: toImageConfig(request, capabilities, log),
    ...toPassedFields(request, OPTIONS, log),
  };
  omitForeign(request, log);
  log.omitWhen(
    Boolean(request.imageOptions?.partialCount) && (!draws || mode !== "stream"),
    "image_options.partial_count",
  );
  const pictureTokens = draws ? MADE_PICTURE_TOKENS : undefined;
  const facts = { streamed, maxTokens, pictureTokens, priceFactor: toPriceFactor(body.service_tier), cacheWrite };
  const own = log.isComplete ? toCallersBody(callers, body) : undefined;
  const uses = toolUsesOf(own ?? body, { pricesPictures: mayDraw(model) });
  return own === undefined
    ? log.finish(body, { ...facts, uses })
    : log.finish(own, { ...facts, uses, isCallers: true, source: callers?.source });
}

/** Lifetime of cached prefixes. The service always writes its cache, with a longer lifetime only by an option. */
const cacheWrite = (json: string): "minutes" | "hour" => (json.includes('"prompt_cache_options"') ? "hour" : "minutes");

type Fields<K extends keyof ResponsesBody> = Pick<ResponsesBody, K>;

/**
 * The conversation with the first system message as `instructions`. For JSON answers without a schema it stays an item, because the
 * service requires the word JSON in `input`.
 */
function toConversation(
  items: readonly InputItem[],
  { instruction, isJsonObject }: { readonly instruction: string | undefined; readonly isJsonObject: boolean },
): Fields<"instructions" | "input"> {
  if (isJsonObject) return { input: instruction === undefined ? items : instruct(items, instruction) };
  const [first, ...rest] = items;
  const content = first !== undefined && isSystem(first) ? first.content : undefined;
  // The service requires at least one item in `input`.
  const isAlone = typeof content !== "string" || content === "" || rest.length === 0;
  return isAlone ? { input: items } : { instructions: content, input: rest };
}

/** Appends `instruction` to the leading system message; adds one if there is none. */
function instruct(items: readonly InputItem[], instruction: string): readonly InputItem[] {
  const [first, ...rest] = items;
  if (first === undefined || !isSystem(first))
    return [{ type: "message", role: "system", content: instruction }, ...items];
  return [{ ...first, content: [...toContents(first), { type: "input_text", text: instruction }] }, ...rest];
}

function toIncluded({ logprobs }: CompletionRequest, can: Capabilities): ResponsesBody["include"] {
  const included = [
    ...(can.reasoning === "none" ? [] : (["reasoning.encrypted_content"] as const)),
    ...(logprobs === undefined || !can.logprobs ? [] : (["message.output_text.logprobs"] as const)),
  ];
  return included.length > 0 ? included : undefined;
}

function toSamplingFields(
  request: CompletionRequest,
  can: Capabilities,
  log: TranslationLog,
): Fields<"temperature" | "top_p" | "top_logprobs"> {
  const { logprobs } = request;
  const sampling = toSampling(request, can, log);
  log.omitWhen(!can.logprobs && logprobs !== undefined, "logprobs");
  log.omitWhen(!can.logprobs && (logprobs?.topCount ?? 0) > 0, "logprobs.top_count");
  return { ...sampling, top_logprobs: can.logprobs ? logprobs?.topCount || undefined : undefined };
}

/** The reasoning fields. Requests summaries too, because the service shows no other text of its reasoning. */
function toReasoning(request: CompletionRequest, can: Capabilities, log: TranslationLog): ResponsesBody["reasoning"] {
  const effort = toEffort(request, can, log);
  if (can.reasoning === "none") return undefined;
  return { effort, summary: effort === "none" ? undefined : "auto" };
}

/** Adds the provider's image tool. Its call is forced when the request only asks for pictures. */
function withImages(
  tools: Fields<"tools" | "tool_choice" | "parallel_tool_calls">,
  {
    request,
    model: { outputModalities },
    partialCount,
  }: { readonly request: CompletionRequest; readonly model: UpstreamModel; readonly partialCount: number },
): Fields<"tools" | "tool_choice" | "parallel_tool_calls"> {
  const wanted = wantedModalities(request, outputModalities);
  if (wanted.includes(Modality.AUDIO)) throw notMade(Modality.AUDIO);
  if (!wanted.includes(Modality.IMAGE)) return tools;
  const isOnly = wanted.length === 1 && tools.tools === undefined;
  return {
    ...tools,
    tools: [
      ...(tools.tools ?? []),
      { type: "image_generation", ...(partialCount > 0 && { partial_images: partialCount }) },
    ],
    ...(isOnly && { tool_choice: { type: "image_generation" } }),
  };
}

/** Reports fields without a counterpart in this API. */
function omitForeign(request: CompletionRequest, log: TranslationLog): void {
  log.omitWhen(request.stopSequences.length > 0, "stop_sequences");
  log.omitWhen(Boolean(request.frequencyPenalty), "frequency_penalty");
  log.omitWhen(Boolean(request.presencePenalty), "presence_penalty");
  log.omitWhen(request.seed !== undefined, "seed");
  log.omitWhen(Object.keys(request.logitBias).length > 0, "logit_bias");
  log.omitWhen(request.prediction !== undefined, "prediction");
}

/** Fields accepted from `provider_options_json`. */
const OPTIONS = ["moderation", "prompt_cache_options", "prompt_cache_retention"] as const;

/** Fields of a request that `POST /responses/input_tokens` takes. Source: `InputTokenCountParams` of the official SDK. */
const COUNTED = [
  "model",
  "instructions",
  "input",
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "text",
  "reasoning",
] as const;

/** The body of `input_tokens` for a translated request. */
export function toCountBody(body: Buffer): Buffer {
  const request = JSON.parse(body.toString()) as Record<string, unknown>;
  return Buffer.from(JSON.stringify(Object.fromEntries(COUNTED.map((name) => [name, request[name]]))));
}
