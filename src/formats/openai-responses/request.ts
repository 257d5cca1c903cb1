import { create } from "@bufbuild/protobuf";
import {
  type CompletionRequest,
  ImageOptionsSchema,
  type ResponseFormat,
  ResponseFormatSchema,
  Verbosity,
} from "../../../gen/parley/v1/completion_pb.js";
import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import { Failure, invalidField } from "../../core/failure.ts";
import { exceedsJsonSize, MAX_REQUEST_JSON } from "../../encoding/json-size.ts";
import { MAX_INT32, MAX_UNRECOGNIZED } from "../../core/validate.ts";
import type { CallersBody } from "../../core/provider.ts";
import type { NameOf } from "../format.ts";
import { EFFORTS, VERBOSITIES } from "../openai-words.ts";
import { shapeReader } from "../shape.ts";
import { fieldNames } from "./field-names.ts";
import { ItemReader, toSignedItem } from "./items.ts";
import { KNOWN_REQUEST_KEYS, type ResponsesRequest, responsesRequest } from "./schema.ts";
import { DIALECT } from "./native.ts";
import {
  isLostChoice,
  type ReadTools,
  readToolChoice,
  readTools,
  type ToolNames,
  unsupported,
  whyNotElsewhere,
} from "./tools.ts";

/** A request, and the requested form of its answer. */
export interface ReadRequest {
  readonly request: CompletionRequest;
  readonly stream: boolean;
  /** Whether the answer includes state of the provider. */
  readonly withState: boolean;
  readonly names: ToolNames;
  /** Whether the answer is to be kept. */
  readonly isKept: boolean;
  /** The kept answer before this request; empty for none. */
  readonly previousId: string;
  /** The conversation as JSON, if the answer is kept; else empty. */
  readonly conversation: string;
  /** Fields of the request that the answer repeats. */
  readonly echo: Echo;
  /** Names of fields that the contract does not have, for `Call.unrecognized`. */
  readonly unrecognized: readonly string[];
  /** The caller's names of the request's fields. */
  readonly nameOf: NameOf;
  /** The body, for a provider of this format. If the request continues a kept answer, it includes the earlier conversation. */
  readonly body: CallersBody;
}

/** The request fields that an answer repeats. `input` is empty, because the conversation is released. */
export type Echo = ResponsesRequest;

/** Fields for OpenAI-compatible providers only, passed through as JSON. */
const OPENAI_ONLY = ["moderation", "prompt_cache_options", "prompt_cache_retention"] as const;
const REASONING_KEYS: ReadonlySet<string> = new Set(["effort", "summary", "generate_summary"]);
const PARLEY_KEYS: ReadonlySet<string> = new Set(["strict"]);
/** `size` of an image tool as aspect ratio and size. */
const SIZES: Readonly<Partial<Record<string, readonly [aspectRatio: string, size: string]>>> = {
  "256x256": ["1:1", "1K"],
  "512x512": ["1:1", "1K"],
  "1024x1024": ["1:1", "1K"],
  "1536x1024": ["3:2", "1K"],
  "1024x1536": ["2:3", "1K"],
  "1792x1024": ["16:9", "1K"],
  "1024x1792": ["9:16", "1K"],
};

const readShape = shapeReader(responsesRequest, "a request of the Responses API");

/** Whether answers may be kept, and the items of the kept answer that a request continues. */
export interface Keeps {
  readonly keeps?: boolean | undefined;
  readonly before?: readonly unknown[] | undefined;
}

/**
 * Converts the JSON of a request. Throws `invalid_request` that names each field of a wrong type, and `request_too_large` for a
 * conversation that has become too large.
 */
export function readResponsesRequest(json: unknown, { keeps = false, before }: Keeps = {}): ReadRequest {
  const own = readShape(json);
  refuseState(own, keeps);
  const isKept = keeps && own.store !== false;
  if (before === undefined) return toReadRequest(own, { keeps, isKept });
  const asked = readShape({ ...own, input: [...before, ...toItems(own.input)] });
  const conversation = JSON.stringify(asked.input);
  const grown = "The conversation of `previous_response_id` has become";
  if (Buffer.byteLength(conversation) > MAX_JOINED_BYTES)
    throw new Failure("request_too_large", `${grown} larger than 32 MiB.`);
  if (exceedsJsonSize(conversation, MAX_REQUEST_JSON))
    throw new Failure("request_too_large", `${grown} more than ${MAX_REQUEST_JSON.values} keys and values.`);
  const read = toReadRequest(asked, { keeps, isKept });
  const nameOf = ownNames(own.input, before.length);
  return {
    ...read,
    unrecognized: read.unrecognized.map(nameOf).filter((name) => name !== PREVIOUS),
    nameOf: (path) => nameOf(read.nameOf(path)),
  };
}

/** The request without the fields for the gateway itself, and with signatures in place of the gateway's reasoning state. */
function toBody(given: ResponsesRequest, tools: ReadTools): CallersBody {
  const json: Record<string, unknown> = { ...given };
  for (const name of FOR_THE_GATEWAY) delete json[name];
  if (typeof given.input !== "string") {
    const { input } = given;
    const items = input.map(toSignedItem);
    // An unchanged list is kept, so that the caller's bytes can be sent.
    if (items.some((item, at) => item !== input[at])) json["input"] = items;
  }
  // Unknown fields in the items are not collected.
  return { dialect: DIALECT, mayHaveMore: true, notElsewhere: whyNotElsewhere(tools), json };
}

const FOR_THE_GATEWAY = ["parley", "fallback_models", "previous_response_id", "background", "conversation", "prompt"];

/** Limit of a conversation, equal to that of a request. */
const MAX_JOINED_BYTES = 32 * 1024 * 1024;

const PREVIOUS = "previous_response_id";

/** Names the fields of a conversation whose first `kept` items came from a kept answer. */
function ownNames(input: ResponsesRequest["input"], kept: number): NameOf {
  return (name) => {
    const found = /^input\[(\d+)\]/.exec(name);
    if (found === null) return name;
    const at = Number(found[1]) - kept;
    if (at < 0) return PREVIOUS;
    return typeof input === "string" ? "input" : `input[${at}]${name.slice(found[0].length)}`;
  };
}

/** The items of an input. */
function toItems(input: ResponsesRequest["input"]): readonly unknown[] {
  if (typeof input !== "string") return input;
  return [{ type: "message", role: "user", content: [{ type: "input_text", text: input }] }];
}

function toReadRequest(
  asked: ResponsesRequest,
  { keeps, isKept }: { readonly keeps: boolean; readonly isKept: boolean },
): ReadRequest {
  const tools = readTools(asked.tools ?? [], asked.tool_choice);
  const items = new ItemReader(tools.names).read(asked.instructions, asked.input);
  const request = toCompletionRequest(asked, tools);
  request.messages = items.messages;
  const lostChoice = isLostChoice(asked.tool_choice, tools) ? ["tool_choice"] : [];
  const unrecognized = [...omittedFields(asked, keeps), ...lostChoice, ...tools.omitted, ...items.omitted].slice(
    0,
    MAX_UNRECOGNIZED,
  );
  return {
    request,
    stream: asked.stream === true,
    withState: asked.include?.includes("reasoning.encrypted_content") === true,
    names: tools.names,
    isKept,
    previousId: asked.previous_response_id ?? "",
    conversation: isKept ? JSON.stringify(toItems(asked.input)) : "",
    echo: { ...asked, input: "" },
    body: toBody(asked, tools),
    unrecognized,
    nameOf: fieldNames({
      places: items.places,
      isText: typeof asked.input === "string",
      tools: tools.places,
      image: tools.image?.place,
      unrecognized,
    }),
  };
}

/** Refuses fields that need a store: without them an answer would silently miss half of the conversation. */
function refuseState(
  { previous_response_id: id, conversation, prompt, background }: ResponsesRequest,
  keeps: boolean,
): void {
  if (id != null && id !== "" && !keeps)
    throw previousNotFound(id, "Parley keeps no responses: send the whole conversation in `input`.");
  if (conversation != null)
    throw unsupported("conversation", "Parley keeps no conversations: send the whole conversation in `input`.");
  if (prompt != null) throw unsupported("prompt", "Parley keeps no prompts: send the text in `input`.");
  if (background === true)
    throw unsupported("background", "Parley runs no responses in the background: use `stream` for long ones.");
}

/** The failure of a request that continues an unknown answer. */
export function previousNotFound(id: string, advice: string): Failure {
  return new Failure("invalid_request", `Previous response with id '${id.slice(0, 64)}' not found. ${advice}`, {
    detail: "previous_response_not_found",
    violations: [{ field: PREVIOUS, description: "is not kept" }],
  });
}

function toCompletionRequest(asked: ResponsesRequest, tools: ReadTools): CompletionRequest {
  // A plain object of the shape that `create` returns, at a fraction of its cost; the compiler reports a missing field.
  const request: CompletionRequest = {
    $typeName: "parley.v1.CompletionRequest",
    model: asked.model,
    messages: [],
    stopSequences: [],
    fallbackModels: asked.fallback_models ?? [],
    modalities: [],
    logitBias: {},
    tools: tools.tools,
    verbosity: Verbosity.UNSPECIFIED,
    metadata: asked.metadata ?? {},
    strict: asked.parley?.strict === true,
    providerOptionsJson: {},
  };
  if (asked.max_output_tokens != null) request.maxOutputTokens = toInt32(asked.max_output_tokens, "max_output_tokens");
  if (asked.temperature != null) request.temperature = asked.temperature;
  if (asked.top_p != null) request.topP = asked.top_p;
  if (wantsLogprobs(asked)) {
    const topCount = toInt32(asked.top_logprobs ?? 0, "top_logprobs");
    request.logprobs = { $typeName: "parley.v1.LogprobOptions", topCount };
  }
  if (asked.tool_choice != null) {
    const choice = readToolChoice(asked.tool_choice, tools);
    if (choice !== undefined) request.toolChoice = choice;
  }
  if (asked.parallel_tool_calls != null) request.parallelToolCalls = asked.parallel_tool_calls;
  if (asked.reasoning?.effort != null)
    request.reasoning = { $typeName: "parley.v1.ReasoningOptions", effort: EFFORTS[asked.reasoning.effort] };
  if (asked.text?.format != null) request.responseFormat = toResponseFormat(asked.text.format);
  if (asked.text?.verbosity != null) request.verbosity = VERBOSITIES[asked.text.verbosity];
  readImages(asked, tools, request);
  readOptions(asked, request);
  return request;
}

const wantsLogprobs = ({ include }: ResponsesRequest): boolean =>
  include?.includes("message.output_text.logprobs") === true;

function readImages(
  { image_config: given, stream }: ResponsesRequest,
  { image }: ReadTools,
  request: CompletionRequest,
): void {
  if (image !== undefined) request.modalities = [Modality.TEXT, Modality.IMAGE];
  const [aspectRatio, size] = SIZES[String(image?.size)] ?? ["", ""];
  const partialCount = stream === true ? (image?.partialCount ?? 0) : 0;
  if (given == null && size === "" && partialCount === 0) return;
  request.imageOptions = create(ImageOptionsSchema, {
    aspectRatio: given?.aspect_ratio ?? aspectRatio,
    size: given?.image_size ?? size,
    partialCount,
  });
}

function readOptions(asked: ResponsesRequest, request: CompletionRequest): void {
  if (asked.user != null) request.endUserId = asked.user;
  if (asked.safety_identifier != null) request.safetyIdentifier = asked.safety_identifier;
  if (asked.service_tier != null) request.serviceTier = asked.service_tier;
  if (asked.store === false) request.store = false;
  if (asked.prompt_cache_key != null) request.promptCacheKey = asked.prompt_cache_key;
  for (const name of OPENAI_ONLY) {
    if (asked[name] != null) request.providerOptionsJson[`openai.${name}`] = JSON.stringify(asked[name]);
  }
}

function toResponseFormat(format: NonNullable<NonNullable<ResponsesRequest["text"]>["format"]>): ResponseFormat {
  if (format.type === "text") return create(ResponseFormatSchema, { format: { case: "text", value: {} } });
  if (format.type === "json_object") return create(ResponseFormatSchema, { format: { case: "jsonObject", value: {} } });
  const { name, description, schema, strict } = format;
  const schemaJson = schema == null ? "" : JSON.stringify(schema);
  const value = { name, description: description ?? "", schemaJson, ...(strict != null && { strict }) };
  return create(ResponseFormatSchema, { format: { case: "jsonSchema", value } });
}

function toInt32(value: number, field: string): number {
  if (Math.abs(value) > MAX_INT32) throw invalidField(field, "is too large");
  return value;
}

/** Names of fields that are not honoured: unknown fields, and fields that only OpenAI's servers can use. */
function omittedFields(asked: ResponsesRequest, keeps: boolean): string[] {
  const omitted: string[] = [];
  if (asked.store === true && !keeps) omitted.push("store");
  if (asked.truncation != null && asked.truncation !== "disabled") omitted.push("truncation");
  if (asked.max_tool_calls != null) omitted.push("max_tool_calls");
  if (asked.top_logprobs != null && !wantsLogprobs(asked)) omitted.push("top_logprobs");
  if (asked.context_management != null) omitted.push("context_management");
  addUnknown(omitted, asked, { known: KNOWN_REQUEST_KEYS, path: "" });
  if (asked.reasoning != null) addUnknown(omitted, asked.reasoning, { known: REASONING_KEYS, path: "reasoning." });
  if (asked.parley != null) addUnknown(omitted, asked.parley, { known: PARLEY_KEYS, path: "parley." });
  return omitted;
}

function addUnknown(
  omitted: string[],
  given: Readonly<Record<string, unknown>>,
  { known, path }: { readonly known: ReadonlySet<string>; readonly path: string },
): void {
  for (const key in given) {
    if (omitted.length >= MAX_UNRECOGNIZED) return;
    if (!known.has(key) && given[key] != null) omitted.push(path + key.slice(0, 64));
  }
}
