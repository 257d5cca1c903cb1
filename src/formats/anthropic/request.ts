import { type CompletionRequest, type ResponseFormat, Verbosity } from "../../../gen/parley/v1/completion_pb.js";
import { ReasoningEffort, type ReasoningOptions } from "../../../gen/parley/v1/reasoning_pb.js";
import { type Tool, type ToolChoice, ToolMode } from "../../../gen/parley/v1/tool_pb.js";
import { Failure, invalidField } from "../../core/failure.ts";
import { isOtherField } from "../../core/provider-options.ts";
import type { CallersBody } from "../../core/provider.ts";
import { MAX_INT32, MAX_STOPS } from "../../core/validate.ts";
import type { FormatInput, NameOf, RequestHeaders } from "../format.ts";
import { shapeReader } from "../shape.ts";
import { DIALECT, noteCacheControl, toCacheMark, toNative } from "./blocks.ts";
import { isBillingText, toConversation } from "./messages.ts";
import { fieldNames, MAX_KEY_CHARS, Unrecognized, withDottedPaths } from "./places.ts";
import { type CustomTool, KNOWN_KEYS, type MessagesRequest, messagesRequest, type ToolParam } from "./schema.ts";

/** A request, and the requested form of its answer. */
export interface ReadRequest {
  readonly request: CompletionRequest;
  readonly stream: boolean;
  /** Whether the text of the model's reasoning is left out of the answer. */
  readonly hidesThinking: boolean;
  readonly unrecognized: readonly string[];
  readonly nameOf: NameOf;
  readonly body: CallersBody;
}

const readShape = shapeReader(messagesRequest, "a Messages request");

const EFFORTS = {
  low: ReasoningEffort.LOW,
  medium: ReasoningEffort.MEDIUM,
  high: ReasoningEffort.HIGH,
  xhigh: ReasoningEffort.XHIGH,
  max: ReasoningEffort.MAX,
} as const;

/** Name of a response format in the contract. This wire format has no such name. */
const OUTPUT = "output";

/** Longest session ID that the contract accepts. */
const MAX_SESSION_ID_CHARS = 256;

/** Reads a request. Throws `invalid_request` that names each field of a wrong type. */
export function readMessagesRequest({ json, headers }: Pick<FormatInput, "json" | "headers">): ReadRequest {
  const given = read(json);
  // Refused, because without the thread most of the conversation would be missing.
  if (given.thread != null) throw invalidField("thread", "the gateway keeps no conversations; send all messages");
  if (given.messages.length === 0) throw invalidField("messages", "must hold at least one message");
  const unrecognized = new Unrecognized();
  const providerOptionsJson = readOtherFields(given, headers, unrecognized);
  noteUnknown(given, unrecognized);
  const { messages, places } = toConversation(given, unrecognized);
  // A plain object of the shape that `create` returns, at a fraction of its cost; the compiler reports a missing field.
  const request: CompletionRequest = {
    $typeName: "parley.v1.CompletionRequest",
    model: given.model,
    messages,
    stopSequences: (given.stop_sequences ?? []).slice(0, MAX_STOPS),
    fallbackModels: given.fallback_models ?? [],
    modalities: [],
    logitBias: {},
    tools: (given.tools ?? []).map((tool, index) => toTool(tool, `tools.${index}`, unrecognized)),
    verbosity: Verbosity.UNSPECIFIED,
    metadata: {},
    strict: given.parley?.strict === true,
    providerOptionsJson,
  };
  const effortField = readReasoning(given, request, unrecognized);
  readOptions(given, request);
  readToolChoice(given, request);
  readSession(headers, request);
  const { names } = unrecognized;
  return {
    request,
    stream: given.stream === true,
    hidesThinking: given.thinking?.display === "omitted",
    unrecognized: names,
    nameOf: fieldNames({ places, unrecognized: names, effortField }),
    body: toBody(given, headers),
  };
}

/** The request without the fields for the gateway itself. */
function toBody(given: MessagesRequest, headers: RequestHeaders): CallersBody {
  const json: Record<string, unknown> = { ...given };
  delete json["parley"];
  delete json["fallback_models"];
  const others = otherHeaders(headers);
  return { dialect: DIALECT, mayHaveMore: others !== undefined, headers: others, json };
}

const SESSION_HEADER = "x-claude-code-session-id";

/** Whether a header is read: the vendor's headers and the session header. */
export const readsHeader = (name: string): boolean => name.startsWith("anthropic-") || name === SESSION_HEADER;

const MAX_OTHER_HEADERS = 16;
const OTHER_HEADER = /^anthropic-[a-z0-9-]{1,64}$/;
const OTHER_VALUE = /^[\x20-\x7e]{1,256}$/;
/** Headers that are not passed on: betas are read separately, and the provider's answers are read in one version. */
const READ_HEADERS: ReadonlySet<string> = new Set(["anthropic-beta", "anthropic-version"]);

/** Headers of the vendor that the gateway does not know; undefined without any. */
function otherHeaders(headers: RequestHeaders): Readonly<Record<string, string>> | undefined {
  const others: Record<string, string> = {};
  let count = 0;
  for (const name in headers) {
    const value = headers[name];
    if (!name.startsWith("anthropic-") || READ_HEADERS.has(name) || typeof value !== "string") continue;
    if (OTHER_HEADER.test(name) && OTHER_VALUE.test(value) && ++count <= MAX_OTHER_HEADERS) others[name] = value;
  }
  return count === 0 ? undefined : others;
}

function read(json: unknown): MessagesRequest {
  try {
    return readShape(json);
  } catch (reason) {
    throw reason instanceof Failure ? withDottedPaths(reason) : reason;
  }
}

/** Limit of passed-on fields without a place in the contract. */
const MAX_OTHER_FIELDS = 32;
const MAX_BETAS = 64;
const BETA = /^[\w.-]{1,64}$/;

/** Fields of the provider's dialect that are read from another place of the request: a header, and the system prompt. */
const OF_OTHER_PLACES: ReadonlySet<string> = new Set(["betas", "billing_text"]);

/**
 * Fields of the request, names of betas and the billing text, which have no place in the contract. Providers of this dialect get them
 * unchanged.
 */
function readOtherFields(
  given: MessagesRequest,
  { "anthropic-beta": betas }: RequestHeaders,
  unrecognized: Unrecognized,
): Record<string, string> {
  const others: Record<string, string> = {};
  if (typeof betas === "string" && betas !== "") others["anthropic.betas"] = JSON.stringify(readBetas(betas));
  const billing = billingText(given);
  if (billing !== undefined) others["anthropic.billing_text"] = JSON.stringify(billing);
  let count = 0;
  for (const key in given) {
    if (KNOWN_KEYS.request.has(key)) continue;
    const name = `anthropic.${key}`;
    if (!OF_OTHER_PLACES.has(key) && isOtherField(name) && ++count <= MAX_OTHER_FIELDS)
      others[name] = JSON.stringify((given as Record<string, unknown>)[key]);
    else unrecognized.add(key.slice(0, MAX_KEY_CHARS));
  }
  return others;
}

/** Reads the names of betas. Trims each name separately, because a pattern for the spaces would take quadratic time. */
function readBetas(header: string): string[] {
  const names = header.split(",", MAX_BETAS).map((name) => name.trim());
  return names.filter((name) => BETA.test(name));
}

function billingText({ system }: MessagesRequest): string | undefined {
  const first = typeof system === "string" ? system : system?.[0]?.text;
  return first !== undefined && isBillingText(first) ? first : undefined;
}

function noteUnknown(given: MessagesRequest, unrecognized: Unrecognized): void {
  if (given.thinking != null) unrecognized.addKeys(given.thinking, KNOWN_KEYS.thinking, "thinking.");
  if (given.output_config != null) {
    unrecognized.addKeys(given.output_config, KNOWN_KEYS.outputConfig, "output_config.");
    noteFormat(given.output_config.format, "output_config.format.", unrecognized);
  }
  noteFormat(given.output_format, "output_format.", unrecognized);
  if (given.tool_choice != null)
    unrecognized.addKeys(given.tool_choice, KNOWN_KEYS.toolChoice[given.tool_choice.type], "tool_choice.");
  noteCacheControl(given.cache_control, "", unrecognized);
  if (given.metadata != null) unrecognized.addKeys(given.metadata, KNOWN_KEYS.metadata, "metadata.");
  if (given.parley != null) unrecognized.addKeys(given.parley, KNOWN_KEYS.parley, "parley.");
  const stops = given.stop_sequences?.length ?? 0;
  for (let at = MAX_STOPS; at < stops && !unrecognized.full; at++) unrecognized.add(`stop_sequences.${at}`);
}

function noteFormat(format: MessagesRequest["output_format"], path: string, unrecognized: Unrecognized): void {
  if (format != null) unrecognized.addKeys(format, KNOWN_KEYS.outputFormat, path);
}

/**
 * Reads the reasoning. Returns the field from which the effort was read. Clients send budgets of -1, which are left out, and budgets
 * above `max_tokens`, which the provider's translation clamps.
 */
function readReasoning(
  { thinking, output_config: config }: MessagesRequest,
  request: CompletionRequest,
  unrecognized: Unrecognized,
): string {
  const set = (options: Pick<ReasoningOptions, "effort" | "maxTokens">): void => {
    request.reasoning = { $typeName: "parley.v1.ReasoningOptions", ...options };
  };
  if (thinking?.type === "disabled") {
    set({ effort: ReasoningEffort.NONE });
    return "thinking.type";
  }
  const effort = config?.effort == null ? ReasoningEffort.UNSPECIFIED : EFFORTS[config.effort];
  if (effort !== ReasoningEffort.UNSPECIFIED) set({ effort });
  // The vendor's default effort.
  else if (thinking?.type === "adaptive") set({ effort: ReasoningEffort.HIGH });
  if (thinking?.type === "enabled") {
    const budget = thinking.budget_tokens ?? 0;
    if (Number.isInteger(budget) && budget >= 1 && budget <= MAX_INT32) set({ effort, maxTokens: budget });
    else if (thinking.budget_tokens != null) unrecognized.add("thinking.budget_tokens");
  }
  return config?.effort == null ? "thinking.type" : "output_config.effort";
}

function readOptions(given: MessagesRequest, request: CompletionRequest): void {
  if (given.max_tokens != null) request.maxOutputTokens = toInt32(given.max_tokens, "max_tokens");
  if (given.temperature != null) request.temperature = given.temperature;
  if (given.top_p != null) request.topP = given.top_p;
  if (given.top_k != null) request.topK = toInt32(given.top_k, "top_k");
  if (given.metadata?.user_id != null) request.endUserId = given.metadata.user_id;
  if (given.service_tier != null)
    request.serviceTier = given.service_tier === "standard_only" ? "default" : given.service_tier;
  const format = given.output_config?.format ?? given.output_format;
  if (format != null) request.responseFormat = toResponseFormat(format.schema);
}

function toResponseFormat(schema: Readonly<Record<string, unknown>>): ResponseFormat {
  const value = {
    $typeName: "parley.v1.JsonSchemaFormat",
    name: OUTPUT,
    description: "",
    schemaJson: JSON.stringify(schema),
    strict: true,
  } as const;
  return { $typeName: "parley.v1.ResponseFormat", format: { case: "jsonSchema", value } };
}

/** Refuses numbers beyond an int32. Core refuses other counts outside of the contract's range. */
function toInt32(value: number, field: string): number {
  if (Math.abs(value) > MAX_INT32) throw invalidField(field, "is too large");
  return value;
}

function isServerTool(tool: ToolParam): tool is Exclude<ToolParam, CustomTool> {
  return tool.type != null && tool.type !== "custom";
}

function toTool(given: ToolParam, path: string, unrecognized: Unrecognized): Tool {
  const tool: Tool = { $typeName: "parley.v1.Tool", kind: isServerTool(given) ? toNative(given) : toFunction(given) };
  if (!isServerTool(given)) unrecognized.addKeys(given, KNOWN_KEYS.tool, `${path}.`);
  noteCacheControl(given.cache_control, `${path}.`, unrecognized);
  const mark = toCacheMark(given.cache_control, path);
  if (mark !== undefined) tool.cacheMark = mark;
  return tool;
}

function toFunction({ name, description, input_schema: schema, strict }: CustomTool): Tool["kind"] {
  const value = {
    $typeName: "parley.v1.FunctionTool",
    name,
    description: description ?? "",
    parametersJson: JSON.stringify(schema),
    ...(strict != null && { strict }),
  } as const;
  return { case: "function", value };
}

function readToolChoice({ tools, tool_choice: choice }: MessagesRequest, request: CompletionRequest): void {
  if (choice == null) return;
  if (choice.type !== "none" && choice.disable_parallel_tool_use != null)
    request.parallelToolCalls = !choice.disable_parallel_tool_use;
  request.toolChoice = { $typeName: "parley.v1.ToolChoice", choice: toChoice(choice, tools ?? []) };
}

const MODES = { auto: ToolMode.AUTO, any: ToolMode.REQUIRED, none: ToolMode.NONE } as const;

/** Converts a choice. The contract cannot name a native tool; if it is the only tool, requiring any call requires it. */
function toChoice(
  choice: NonNullable<MessagesRequest["tool_choice"]>,
  tools: readonly ToolParam[],
): ToolChoice["choice"] {
  if (choice.type !== "tool") return { case: "mode", value: MODES[choice.type] };
  const [only] = tools;
  const isOnly = tools.length === 1 && only !== undefined && isServerTool(only) && only["name"] === choice.name;
  return isOnly ? { case: "mode", value: ToolMode.REQUIRED } : { case: "function", value: choice.name };
}

/** The session of Claude Code, for the provider's prompt cache. */
function readSession(headers: RequestHeaders, request: CompletionRequest): void {
  const session = headers[SESSION_HEADER];
  if (typeof session === "string" && session !== "" && session.length <= MAX_SESSION_ID_CHARS)
    request.sessionId = session;
}
