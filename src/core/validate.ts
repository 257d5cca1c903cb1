import { type CompletionRequest, Modality, ReasoningEffort } from "../../gen/parley/v1/completion_pb.js";
import { type Message, Role, type Tool, ToolMode } from "../../gen/parley/v1/message_pb.js";
import { Failure, type FieldViolation } from "./failure.ts";
import { exceedsJsonSize, MAX_PARSED_DEPTH, MAX_REQUEST_JSON, measureJson } from "../encoding/json-size.ts";
import { makes, type Model } from "./model.ts";

/** Limit of messages per request. */
export const MAX_MESSAGES = 2000;
/** Limit of parts per message: more than the images that any provider accepts in one request. */
export const MAX_PARTS = 4000;
/** Limit of tool calls per message. */
export const MAX_TOOL_CALLS = 512;
/** Limit of reasoning blocks per message. */
export const MAX_REASONING_BLOCKS = 512;
/** Limit of tools per request, and of the tools that `tool_choice` allows. */
export const MAX_TOOLS = 2000;
/** Limit of fallback models. */
export const MAX_FALLBACKS = 8;
/** Limit of requested modalities, duplicates included. */
export const MAX_MODALITIES = 16;
/** Limit of stop sequences. */
export const MAX_STOPS = 4;
/** Ranges of numeric fields, both ends included, by the names that errors use. */
export const RANGES = {
  temperature: [0, 2],
  top_p: [0, 1],
  frequency_penalty: [-2, 2],
  presence_penalty: [-2, 2],
  top_logprobs: [0, 20],
  n: [1, 128],
  logit_bias: [-100, 100],
} as const;
/** Limits of metadata: entries, and characters of keys and values. */
export const METADATA = { maxPairs: 16, maxKeyChars: 64, maxValueChars: 512 } as const;
/** Limit of characters of an end user ID. */
export const MAX_SAFETY_IDENTIFIER_CHARS = 128;
/** The name of a tool, or of a schema. */
export const NAME = /^[a-zA-Z0-9_-]{1,64}$/;
/** Limit of violations that are reported for one request. */
export const MAX_VIOLATIONS = 20;
/** Limit of unknown fields that are reported. */
export const MAX_UNRECOGNIZED = 64;
/** Characters of a caller's key that a violation repeats. */
const MAX_KEY_CHARS = 64;
const OPENAI_OPTIONS: ReadonlySet<string> = new Set([
  "moderation",
  "prompt_cache_options",
  "prompt_cache_retention",
  "web_search_options",
]);

/** Collects violations, up to MAX_VIOLATIONS, to report them together. */
class Violations {
  readonly list: FieldViolation[] = [];

  /** Whether MAX_VIOLATIONS is reached, so that checking can stop. */
  get full(): boolean {
    return this.list.length >= MAX_VIOLATIONS;
  }

  add(field: string, description: string): void {
    if (!this.full) this.list.push({ field, description });
  }

  range(field: string, value: number | undefined, [min, max]: readonly [number, number]): void {
    if (value === undefined || (value >= min && value <= max)) return;
    this.add(field, `must be between ${min} and ${max}`);
  }
}

/**
 * Checks the meaning of a request, for all inbound protocols. `primary`: its model; `imageMakers`: the IDs of models that
 * generate images. Throws `invalid_request` with every invalid field.
 */
export function validate(request: CompletionRequest, primary: Model, imageMakers: () => readonly string[]): void {
  const wrong = new Violations();
  checkMessages(request.messages, wrong);
  checkSampling(request, wrong);
  checkLimits(request, primary, wrong);
  if (hasTooMuchJson(request)) {
    const most = `${MAX_REQUEST_JSON.values} keys and values`;
    wrong.add("tools", `must not, with the schemas and arguments of the whole request, hold more than ${most}`);
  } else checkTools(request, wrong);
  checkOptions(request, wrong);
  checkModalities(request, wrong, { primary, imageMakers });
  const [first] = wrong.list;
  if (first !== undefined)
    throw new Failure("invalid_request", `${first.field}: ${first.description}.`, { violations: wrong.list });
}

function checkMessages(messages: readonly Message[], wrong: Violations): void {
  if (messages.length === 0) wrong.add("messages", "must hold at least one message");
  if (messages.length > MAX_MESSAGES) return wrong.add("messages", `must hold at most ${MAX_MESSAGES} messages`);
  for (let at = 0; at < messages.length && !wrong.full; at++) checkMessage(messages[at]!, at, wrong);
  if (!wrong.full) checkToolResults(messages, wrong);
}

/** Builds field paths only for violations: most conversations are long and valid. */
function checkMessage(message: Message, at: number, wrong: Violations): void {
  if (Role[message.role] === undefined || message.role === Role.UNSPECIFIED)
    return wrong.add(`messages[${at}].role`, "must be one of system, developer, user, assistant, tool");
  checkLengths(message, at, wrong);
  for (let index = 0; index < message.content.length && !wrong.full; index++) {
    const { content } = message.content[index]!;
    if (content.case === "text") continue;
    const part = `messages[${at}].content[${index}]`;
    if (content.case === undefined) wrong.add(part, "must be text, an image, audio or a file");
    else if (content.case === "image") checkImage(content.value, part, wrong);
    if (message.role === Role.SYSTEM) wrong.add(part, "must be text in a system message");
  }
  if (message.role === Role.TOOL && !message.toolCallId)
    wrong.add(`messages[${at}].tool_call_id`, "is required in a tool message");
  const speaks = message.content.length > 0 || message.toolCalls.length > 0 || message.refusal !== undefined;
  if (!speaks && (message.role === Role.USER || message.role === Role.SYSTEM))
    wrong.add(`messages[${at}].content`, "must not be empty");
  if (message.toolCalls.length > 0 && message.role !== Role.ASSISTANT)
    wrong.add(`messages[${at}].tool_calls`, "belong to assistant messages");
}

function checkLengths({ content, toolCalls, reasoning }: Message, at: number, wrong: Violations): void {
  if (content.length > MAX_PARTS) wrong.add(`messages[${at}].content`, `must hold at most ${MAX_PARTS} parts`);
  if (toolCalls.length > MAX_TOOL_CALLS)
    wrong.add(`messages[${at}].tool_calls`, `must hold at most ${MAX_TOOL_CALLS} calls`);
  if (reasoning.length > MAX_REASONING_BLOCKS)
    wrong.add(`messages[${at}].reasoning`, `must hold at most ${MAX_REASONING_BLOCKS} blocks`);
}

function checkImage(
  { source }: { source: { case: string | undefined; value?: unknown } },
  at: string,
  wrong: Violations,
): void {
  if (source.case === "url" && !/^https:\/\//i.test(String(source.value))) {
    wrong.add(at, "must be an https address or a data URL");
  } else if (source.case === undefined) wrong.add(at, "must have its data or an address");
}

/** Each tool call needs its result directly after the message with the call, and no other result is valid. */
function checkToolResults(messages: readonly Message[], wrong: Violations): void {
  let open = new Set<string>();
  let openedAt = -1;
  const requireNone = (): void => {
    if (open.size === 0) return;
    const missing = [...open].slice(0, 3).join(", ");
    wrong.add(
      `messages[${openedAt}].tool_calls`,
      `must be followed by tool messages for each tool_call_id; missing: ${missing}`,
    );
    open = new Set();
  };
  messages.forEach((message, index) => {
    if (message.role === Role.TOOL) {
      const id = message.toolCallId ?? "";
      if (id !== "" && !open.delete(id))
        wrong.add(`messages[${index}].tool_call_id`, "must be the ID of a call in the assistant message before it");
      return;
    }
    requireNone();
    if (message.toolCalls.length > 0) {
      open = new Set(message.toolCalls.map((call) => call.id));
      openedAt = index;
    }
  });
  requireNone();
}

function checkSampling(request: CompletionRequest, wrong: Violations): void {
  wrong.range("temperature", request.temperature, RANGES.temperature);
  wrong.range("top_p", request.topP, RANGES.top_p);
  wrong.range("frequency_penalty", request.frequencyPenalty, RANGES.frequency_penalty);
  wrong.range("presence_penalty", request.presencePenalty, RANGES.presence_penalty);
  wrong.range("top_logprobs", request.topLogprobs, RANGES.top_logprobs);
  wrong.range("n", request.n, RANGES.n);
  if (request.topLogprobs !== undefined && request.logprobs !== true)
    wrong.add("top_logprobs", "needs logprobs to be true");
  const [min, max] = RANGES.logit_bias;
  for (const token in request.logitBias) {
    const bias = request.logitBias[token]!;
    if (bias >= min && bias <= max) continue;
    wrong.range(`logit_bias.${token.slice(0, MAX_KEY_CHARS)}`, bias, RANGES.logit_bias);
    if (wrong.full) return;
  }
}

function checkOptions(request: CompletionRequest, wrong: Violations): void {
  if (ReasoningEffort[request.reasoningEffort] === undefined) wrong.add("reasoning_effort", "is not an effort");
  if ((request.safetyIdentifier?.length ?? 0) > MAX_SAFETY_IDENTIFIER_CHARS) {
    wrong.add("safety_identifier", `must be at most ${MAX_SAFETY_IDENTIFIER_CHARS} characters`);
  }
  if (request.unrecognizedFields.length > MAX_UNRECOGNIZED) {
    wrong.add("unrecognized_fields", `must hold at most ${MAX_UNRECOGNIZED} names`);
  }
  const unknown = Object.keys(request.openaiOptionsJson).find((name) => !OPENAI_OPTIONS.has(name));
  if (unknown !== undefined) wrong.add("openai_options_json", `has no place for ${unknown.slice(0, MAX_KEY_CHARS)}`);
}

function checkLimits(request: CompletionRequest, primary: Model, wrong: Violations): void {
  const { maxOutputTokens } = primary.upstream;
  wrong.range("max_tokens", request.maxTokens, [1, maxOutputTokens]);
  if (request.stop.length > MAX_STOPS) wrong.add("stop", `must hold at most ${MAX_STOPS} sequences`);
  request.stop.slice(0, MAX_STOPS).forEach((stop, index) => {
    if (stop === "") wrong.add(`stop[${index}]`, "must not be empty");
  });
  if (request.fallbackModels.length > MAX_FALLBACKS) {
    wrong.add("fallback_models", `must hold at most ${MAX_FALLBACKS} models`);
  }
  checkLabels(request.metadata, wrong);
}

function checkLabels(metadata: Readonly<Record<string, string>>, wrong: Violations): void {
  const { maxPairs, maxKeyChars, maxValueChars } = METADATA;
  let pairs = 0;
  for (const key in metadata) {
    if (++pairs > maxPairs) return wrong.add("metadata", `must hold at most ${maxPairs} pairs`);
    if (key.length < 1 || key.length > maxKeyChars) {
      wrong.add("metadata", `must have keys of 1 to ${maxKeyChars} characters`);
    }
    if (metadata[key]!.length > maxValueChars) {
      wrong.add(`metadata.${key.slice(0, maxKeyChars)}`, `must be at most ${maxValueChars} characters`);
    }
  }
}

function checkTools(request: CompletionRequest, wrong: Violations): void {
  if (request.tools.length > MAX_TOOLS) return wrong.add("tools", `must hold at most ${MAX_TOOLS} tools`);
  for (let index = 0; index < request.tools.length && !wrong.full; index++)
    checkTool(request.tools[index]!, index, wrong);
  checkToolChoice(request, wrong);
  const format = request.responseFormat?.format;
  if (format?.case === "jsonSchema") {
    if (!NAME.test(format.value.name))
      wrong.add("response_format.json_schema.name", "must be 1 to 64 letters, digits, _ or -");
    if (format.value.schemaJson !== "" && !isJsonObject(format.value.schemaJson)) {
      wrong.add("response_format.json_schema.schema", "must be a JSON schema, which is an object");
    }
  }
}

function checkTool({ kind }: Tool, at: number, wrong: Violations): void {
  if (kind.case === undefined) return wrong.add(`tools[${at}]`, "must be a function or a custom tool");
  if (!NAME.test(kind.value.name))
    wrong.add(`tools[${at}].${kind.case}.name`, "must be 1 to 64 letters, digits, _ or -");
  if (kind.case === "function" && kind.value.parametersJson !== "" && !isJsonObject(kind.value.parametersJson)) {
    wrong.add(`tools[${at}].function.parameters`, "must be a JSON schema, which is an object");
  }
}

/** A tool chosen by name must exist. Without tools the choice has no effect and is not checked. */
function checkToolChoice({ tools, toolChoice }: CompletionRequest, wrong: Violations): void {
  const choice = toolChoice?.choice;
  const mode = choice?.case === "mode" ? choice.value : choice?.case === "allowed" ? choice.value.mode : ToolMode.AUTO;
  if (ToolMode[mode] === undefined) return wrong.add("tool_choice", "is not a mode");
  if (tools.length === 0 || choice?.case === undefined || choice.case === "mode") return;
  const names = choice.case === "allowed" ? choice.value.names : [choice.value];
  if (names.length > MAX_TOOLS) return wrong.add("tool_choice", `must name at most ${MAX_TOOLS} tools`);
  const known = new Set(tools.map(({ kind }) => kind.value?.name));
  const missing = names.find((name) => !known.has(name));
  if (missing !== undefined) wrong.add("tool_choice", `names ${missing.slice(0, 64)}, which is not among tools`);
}

/**
 * Whether the JSON texts in a request, which dialects parse and traverse, together exceed the size limits of a request body.
 * Texts with fewer characters than the limit cannot exceed it and are not measured.
 */
function hasTooMuchJson(request: CompletionRequest): boolean {
  const texts = jsonTexts(request);
  const chars = texts.reduce((sum, { length }) => sum + length, 0);
  if (chars <= MAX_REQUEST_JSON.values) return false;
  let { values: left } = MAX_REQUEST_JSON;
  for (const text of texts) {
    const { depth, values } = measureJson(text, { depth: MAX_PARSED_DEPTH, values: left });
    if (depth <= MAX_PARSED_DEPTH) left -= values;
    if (left < 0) return true;
  }
  return false;
}

function jsonTexts({ tools, messages, responseFormat }: CompletionRequest): string[] {
  const texts: string[] = [];
  for (const { kind } of tools) if (kind.case === "function") texts.push(kind.value.parametersJson);
  for (const { toolCalls } of messages) for (const call of toolCalls) if (!call.custom) texts.push(call.arguments);
  if (responseFormat?.format.case === "jsonSchema") texts.push(responseFormat.format.value.schemaJson);
  return texts;
}

/** Whether the text is a JSON object within the size limits of a request: dialects traverse schemas. */
function isJsonObject(text: string): boolean {
  if (exceedsJsonSize(text, MAX_REQUEST_JSON)) return false;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

function checkModalities(
  request: CompletionRequest,
  wrong: Violations,
  { primary, imageMakers }: { primary: Model; imageMakers: () => readonly string[] },
): void {
  if (request.modalities.length > MAX_MODALITIES)
    return wrong.add("modalities", `must hold at most ${MAX_MODALITIES} entries`);
  const wanted = new Set(request.modalities);
  for (const modality of wanted) {
    if (Modality[modality] === undefined || modality === Modality.UNSPECIFIED)
      wrong.add("modalities", "must be of text, image and audio");
  }
  if (wanted.size > 0 && !wanted.has(Modality.TEXT)) wrong.add("modalities", "must include text");
  if (wanted.has(Modality.IMAGE) && !makes(primary, Modality.IMAGE)) {
    const able = imageMakers().join(", ");
    wrong.add(
      "modalities",
      `must not include image: ${primary.id} does not make pictures${able === "" ? "" : ` (these do: ${able})`}`,
    );
  }
  if (wanted.has(Modality.AUDIO) && !makes(primary, Modality.AUDIO)) {
    wrong.add("modalities", `must not include audio: ${primary.id} does not make speech`);
  }
  if (wanted.has(Modality.AUDIO) && request.audioOptions === undefined) wrong.add("audio", "is required for audio");
}
