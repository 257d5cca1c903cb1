import { create } from "@bufbuild/protobuf";
import {
  AudioOptionsSchema,
  type CompletionRequest,
  ImageOptionsSchema,
  type ResponseFormat,
  ResponseFormatSchema,
  Verbosity,
} from "../../../gen/parley/v1/completion_pb.js";
import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import {
  type FunctionTool,
  type Tool,
  type ToolChoice,
  ToolChoiceSchema,
  ToolSchema,
} from "../../../gen/parley/v1/tool_pb.js";
import { invalidField } from "../../core/failure.ts";
import type { CallersBody } from "../../core/provider.ts";
import { MAX_MESSAGES, MAX_UNRECOGNIZED } from "../../core/validate.ts";
import type { NameOf } from "../format.ts";
import { shapeReader } from "../shape.ts";
import { EFFORTS, MODES, VERBOSITIES } from "../openai-words.ts";
import { fieldNames } from "./field-names.ts";
import { toCacheMark, toMessage } from "./messages.ts";
import { type ChatRequest, chatRequest, INT32_MAX, KNOWN_MESSAGE_KEYS, KNOWN_REQUEST_KEYS } from "./schema.ts";

/** A request, and the requested form of its answer. */
export interface ReadRequest {
  readonly request: CompletionRequest;
  readonly stream: boolean;
  /** Whether the stream ends with a usage chunk. */
  readonly includeUsage: boolean;
  /** Names of fields that the contract does not have, for `Call.unrecognized`. */
  readonly unrecognized: readonly string[];
  /** The caller's names of the request's fields. */
  readonly nameOf: NameOf;
  /** The body, for a provider of this format. */
  readonly body: CallersBody;
}

const MODALITIES = { text: Modality.TEXT, image: Modality.IMAGE, audio: Modality.AUDIO } as const;
/** Fields for OpenAI-compatible providers only, passed through as JSON. */
const OPENAI_ONLY = ["moderation", "prompt_cache_options", "prompt_cache_retention", "web_search_options"] as const;
const KNOWN_PARLEY_KEYS: ReadonlySet<string> = new Set(["strict"]);

/** Reads the shape of a request. */
export const readShape = shapeReader(chatRequest, "a chat completion request");

/** Converts the JSON of a request. Throws `invalid_request` that names each field of a wrong type. */
export function readChatRequest(json: unknown): ReadRequest {
  const chat = readShape(json);
  const request = toCompletionRequest(chat);
  const unrecognized = unrecognizedFields(chat);
  return {
    request,
    unrecognized,
    nameOf: fieldNames(request.messages, unrecognized),
    stream: chat.stream === true,
    includeUsage: chat.stream_options?.include_usage === true,
    body: toBody(chat),
  };
}

/** The request without the fields for the gateway itself. Unknown fields below its messages are not collected. */
function toBody({ parley: _parley, fallback_models: _fallbacks, ...json }: ChatRequest): CallersBody {
  return { dialect: "openai", mayHaveMore: true, inPart: true, json };
}

function toCompletionRequest(chat: ChatRequest): CompletionRequest {
  // A plain object of the shape that `create` returns, at a fraction of its cost; the compiler reports a missing field.
  const request: CompletionRequest = {
    $typeName: "parley.v1.CompletionRequest",
    model: chat.model,
    // One more than core's limit is enough for core to refuse the request.
    messages: chat.messages.slice(0, MAX_MESSAGES + 1).map(toMessage),
    stopSequences: [],
    fallbackModels: [],
    modalities: [],
    logitBias: {},
    tools: [],
    verbosity: Verbosity.UNSPECIFIED,
    metadata: {},
    strict: false,
    providerOptionsJson: {},
  };
  const maxTokens = chat.max_completion_tokens ?? chat.max_tokens;
  if (maxTokens != null)
    request.maxOutputTokens = toInt32(
      maxTokens,
      chat.max_completion_tokens == null ? "max_tokens" : "max_completion_tokens",
    );
  if (chat.temperature != null) request.temperature = chat.temperature;
  if (chat.top_p != null) request.topP = chat.top_p;
  if (chat.stop != null) request.stopSequences = typeof chat.stop === "string" ? [chat.stop] : chat.stop;
  if (chat.fallback_models != null) request.fallbackModels = chat.fallback_models;
  if (chat.modalities != null) request.modalities = chat.modalities.map((name) => MODALITIES[name]);
  if (chat.seed != null) request.seed = BigInt(chat.seed);
  if (chat.n != null) request.choiceCount = toInt32(chat.n, "n");
  if (chat.frequency_penalty != null) request.frequencyPenalty = chat.frequency_penalty;
  if (chat.presence_penalty != null) request.presencePenalty = chat.presence_penalty;
  if (chat.logit_bias != null) request.logitBias = chat.logit_bias;
  if (chat.logprobs === true) {
    const topCount = toInt32(chat.top_logprobs ?? 0, "top_logprobs");
    request.logprobs = { $typeName: "parley.v1.LogprobOptions", topCount };
  } else if (chat.top_logprobs != null) throw invalidField("top_logprobs", "needs logprobs to be true");
  readTools(chat, request);
  if (chat.response_format != null) request.responseFormat = toResponseFormat(chat.response_format);
  if (chat.reasoning_effort != null)
    request.reasoning = { $typeName: "parley.v1.ReasoningOptions", effort: EFFORTS[chat.reasoning_effort] };
  readOptions(chat, request);
  if (chat.parley?.strict === true) request.strict = true;
  return request;
}

function readTools(chat: ChatRequest, request: CompletionRequest): void {
  if (chat.tools != null) request.tools = chat.tools.map((tool, index) => toTool(tool, `tools[${index}]`));
  if (chat.tool_choice != null) request.toolChoice = toToolChoice(chat.tool_choice);
  if (chat.parallel_tool_calls != null) request.parallelToolCalls = chat.parallel_tool_calls;
}

function readOptions(chat: ChatRequest, request: CompletionRequest): void {
  if (chat.image_config != null) {
    const { aspect_ratio: aspectRatio, image_size: size } = chat.image_config;
    request.imageOptions = create(ImageOptionsSchema, { aspectRatio: aspectRatio ?? "", size: size ?? "" });
  }
  if (chat.audio != null) {
    const { format, voice } = chat.audio;
    request.audioOptions = create(AudioOptionsSchema, { format, voice: typeof voice === "string" ? voice : voice.id });
  }
  if (chat.user != null) request.endUserId = chat.user;
  if (chat.safety_identifier != null) request.safetyIdentifier = chat.safety_identifier;
  if (chat.metadata != null) request.metadata = chat.metadata;
  if (chat.service_tier != null) request.serviceTier = chat.service_tier;
  if (chat.store != null) request.store = chat.store;
  if (chat.verbosity != null) request.verbosity = VERBOSITIES[chat.verbosity];
  if (chat.prompt_cache_key != null) request.promptCacheKey = chat.prompt_cache_key;
  if (chat.prediction != null) {
    const { content } = chat.prediction;
    request.prediction = typeof content === "string" ? content : content.map((part) => part.text).join("");
  }
  for (const name of OPENAI_ONLY) {
    if (chat[name] != null) request.providerOptionsJson[`openai.${name}`] = JSON.stringify(chat[name]);
  }
}

function toTool(tool: NonNullable<ChatRequest["tools"]>[number], path: string): Tool {
  if (tool.type === "custom") {
    const { name, description, format } = tool.custom;
    const formatJson = format == null ? "" : JSON.stringify(format);
    return create(ToolSchema, {
      kind: { case: "custom", value: { name, description: description ?? "", formatJson } },
    });
  }
  const { name, description, parameters, strict } = tool.function;
  const parametersJson = parameters == null ? "" : JSON.stringify(parameters);
  // Plain objects, as messages.
  const value: FunctionTool = {
    $typeName: "parley.v1.FunctionTool",
    name,
    description: description ?? "",
    parametersJson,
  };
  if (strict != null) value.strict = strict;
  const out: Tool = { $typeName: "parley.v1.Tool", kind: { case: "function", value } };
  const mark = toCacheMark(tool.cache_control, path);
  if (mark !== undefined) out.cacheMark = mark;
  return out;
}

function toToolChoice(choice: NonNullable<ChatRequest["tool_choice"]>): ToolChoice {
  if (typeof choice === "string") return create(ToolChoiceSchema, { choice: { case: "mode", value: MODES[choice] } });
  switch (choice.type) {
    case "function":
      return create(ToolChoiceSchema, { choice: { case: "function", value: choice.function.name } });
    case "custom":
      return create(ToolChoiceSchema, { choice: { case: "custom", value: choice.custom.name } });
    case "allowed_tools": {
      const { mode, tools } = choice.allowed_tools;
      const names = tools.map((tool) => (tool.type === "function" ? tool.function.name : tool.custom.name));
      return create(ToolChoiceSchema, { choice: { case: "allowed", value: { mode: MODES[mode], names } } });
    }
  }
}

function toResponseFormat(format: NonNullable<ChatRequest["response_format"]>): ResponseFormat {
  if (format.type === "text") return create(ResponseFormatSchema, { format: { case: "text", value: {} } });
  if (format.type === "json_object") return create(ResponseFormatSchema, { format: { case: "jsonObject", value: {} } });
  const { name, description, schema, strict } = format.json_schema;
  const schemaJson = schema == null ? "" : JSON.stringify(schema);
  const value = { name, description: description ?? "", schemaJson, ...(strict != null && { strict }) };
  return create(ResponseFormatSchema, { format: { case: "jsonSchema", value } });
}

/** Refuses numbers beyond an int32. Core refuses other counts out of range, and names the range. */
function toInt32(value: number, field: string): number {
  if (Math.abs(value) > INT32_MAX) throw invalidField(field, "is too large");
  return value;
}

/** The first MAX_UNRECOGNIZED unknown fields. */
function unrecognizedFields(chat: ChatRequest): string[] {
  const unknown: string[] = [];
  addUnknown(unknown, chat, { known: KNOWN_REQUEST_KEYS, path: "" });
  if (chat.parley != null) addUnknown(unknown, chat.parley, { known: KNOWN_PARLEY_KEYS, path: "parley." });
  for (let at = 0; at < Math.min(chat.messages.length, MAX_MESSAGES) && unknown.length < MAX_UNRECOGNIZED; at++)
    addUnknown(unknown, chat.messages[at]!, { known: KNOWN_MESSAGE_KEYS, path: at });
  return unknown;
}

/** `path`: prefix of each key; a number is the index of a message. */
function addUnknown(
  unknown: string[],
  given: object,
  { known, path }: { readonly known: ReadonlySet<string>; readonly path: string | number },
): void {
  for (const key in given) {
    if (known.has(key)) continue;
    if (unknown.length >= MAX_UNRECOGNIZED) return;
    unknown.push(`${typeof path === "number" ? `messages[${path}].` : path}${key.slice(0, 64)}`);
  }
}
