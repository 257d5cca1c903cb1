import { type CompletionRequest, Modality, ReasoningEffort } from "../../gen/parley/v1/completion_pb.js";
import { type Message, Role, ToolMode } from "../../gen/parley/v1/message_pb.js";
import { Failure, type FieldViolation } from "./failure.ts";
import { makes, type Model } from "./model.ts";

/** The most messages of one request. */
export const MAX_MESSAGES = 2000;
/** The most models to fall back to. */
export const MAX_FALLBACKS = 8;
/** The most texts that end an answer. */
export const MAX_STOPS = 4;
/** What numbers of a request may be, both ends included, by the names that errors say. */
export const RANGES = {
  temperature: [0, 2],
  top_p: [0, 1],
  frequency_penalty: [-2, 2],
  presence_penalty: [-2, 2],
  top_logprobs: [0, 20],
  n: [1, 128],
  logit_bias: [-100, 100],
} as const;
/** How many labels a request may have, and how long they may be. */
export const METADATA = { maxPairs: 16, maxKeyChars: 64, maxValueChars: 512 } as const;
/** How long the anonymous ID of an end user may be. */
export const MAX_SAFETY_IDENTIFIER_CHARS = 128;
/** The name of a tool, or of a schema. */
export const NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const MAX_SCHEMA_DEPTH = 64;
const MAX_LISTED = 20;
/** The most fields of a request that are reported as unknown. */
export const MAX_UNRECOGNIZED = 64;
const OPENAI_OPTIONS: ReadonlySet<string> = new Set([
  "moderation",
  "prompt_cache_options",
  "prompt_cache_retention",
  "web_search_options",
]);

/** Collects violations; a request is told about all of them at once, up to a sane number. */
class Violations {
  readonly list: FieldViolation[] = [];

  add(field: string, description: string): void {
    if (this.list.length < MAX_LISTED) this.list.push({ field, description });
  }

  range(field: string, value: number | undefined, [min, max]: readonly [number, number]): void {
    if (value === undefined || (value >= min && value <= max)) return;
    this.add(field, `must be between ${min} and ${max}`);
  }
}

/**
 * Checks what a request means, once for both entrances. `primary` is the model it names, `imageMakers` the IDs of those
 * that make pictures. Throws `invalid_request` with every offending field.
 */
export function validate(request: CompletionRequest, primary: Model, imageMakers: () => readonly string[]): void {
  const wrong = new Violations();
  checkMessages(request.messages, wrong);
  checkSampling(request, wrong);
  checkLimits(request, primary, wrong);
  checkTools(request, wrong);
  checkOptions(request, wrong);
  checkModalities(request, wrong, { primary, imageMakers });
  const [first] = wrong.list;
  if (first !== undefined)
    throw new Failure("invalid_request", `${first.field}: ${first.description}.`, { violations: wrong.list });
}

function checkMessages(messages: readonly Message[], wrong: Violations): void {
  if (messages.length === 0) wrong.add("messages", "must hold at least one message");
  if (messages.length > MAX_MESSAGES) return wrong.add("messages", `must hold at most ${MAX_MESSAGES} messages`);
  messages.forEach((message, index) => checkMessage(message, index, wrong));
  checkToolResults(messages, wrong);
}

/** Names are made only for what is wrong: most conversations are long, and right. */
function checkMessage(message: Message, at: number, wrong: Violations): void {
  if (Role[message.role] === undefined || message.role === Role.UNSPECIFIED)
    return wrong.add(`messages[${at}].role`, "must be one of system, developer, user, assistant, tool");
  message.content.forEach(({ content }, index) => {
    if (content.case === "text") return;
    const part = `messages[${at}].content[${index}]`;
    if (content.case === undefined) wrong.add(part, "must be text, an image, audio or a file");
    else if (content.case === "image") checkImage(content.value, part, wrong);
    if (message.role === Role.SYSTEM) wrong.add(part, "must be text in a system message");
  });
  if (message.role === Role.TOOL && !message.toolCallId)
    wrong.add(`messages[${at}].tool_call_id`, "is required in a tool message");
  const speaks = message.content.length > 0 || message.toolCalls.length > 0 || message.refusal !== undefined;
  if (!speaks && (message.role === Role.USER || message.role === Role.SYSTEM))
    wrong.add(`messages[${at}].content`, "must not be empty");
  if (message.toolCalls.length > 0 && message.role !== Role.ASSISTANT)
    wrong.add(`messages[${at}].tool_calls`, "belong to assistant messages");
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

/** Each call must be answered, right after the message that makes it, and nothing else may be. */
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
  for (const [token, bias] of Object.entries(request.logitBias)) {
    wrong.range(`logit_bias.${token}`, bias, RANGES.logit_bias);
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
  if (unknown !== undefined) wrong.add("openai_options_json", `has no place for ${unknown}`);
}

function checkLimits(request: CompletionRequest, primary: Model, wrong: Violations): void {
  const { maxOutputTokens } = primary.upstream;
  wrong.range("max_tokens", request.maxTokens, [1, maxOutputTokens]);
  if (request.stop.length > MAX_STOPS) wrong.add("stop", `must hold at most ${MAX_STOPS} sequences`);
  request.stop.forEach((stop, index) => {
    if (stop === "") wrong.add(`stop[${index}]`, "must not be empty");
  });
  if (request.fallbackModels.length > MAX_FALLBACKS) {
    wrong.add("fallback_models", `must hold at most ${MAX_FALLBACKS} models`);
  }
  const labels = Object.entries(request.metadata);
  const { maxPairs, maxKeyChars, maxValueChars } = METADATA;
  if (labels.length > maxPairs) wrong.add("metadata", `must hold at most ${maxPairs} pairs`);
  for (const [key, value] of labels) {
    if (key.length < 1 || key.length > maxKeyChars) {
      wrong.add("metadata", `must have keys of 1 to ${maxKeyChars} characters`);
    }
    if (value.length > maxValueChars) {
      wrong.add(`metadata.${key.slice(0, maxKeyChars)}`, `must be at most ${maxValueChars} characters`);
    }
  }
}

function checkTools(request: CompletionRequest, wrong: Violations): void {
  request.tools.forEach(({ kind }, index) => {
    const path = `tools[${index}]`;
    if (kind.case === undefined) return wrong.add(path, "must be a function or a custom tool");
    if (!NAME.test(kind.value.name)) wrong.add(`${path}.${kind.case}.name`, "must be 1 to 64 letters, digits, _ or -");
    if (kind.case === "function" && kind.value.parametersJson !== "" && !isJsonObject(kind.value.parametersJson)) {
      wrong.add(`${path}.function.parameters`, "must be a JSON schema, which is an object");
    }
  });
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

/** A tool that is asked for by name must be there. Without any tools the choice means nothing and is left alone. */
function checkToolChoice({ tools, toolChoice }: CompletionRequest, wrong: Violations): void {
  const choice = toolChoice?.choice;
  const mode = choice?.case === "mode" ? choice.value : choice?.case === "allowed" ? choice.value.mode : ToolMode.AUTO;
  if (ToolMode[mode] === undefined) return wrong.add("tool_choice", "is not a mode");
  if (tools.length === 0 || choice?.case === undefined || choice.case === "mode") return;
  const names = choice.case === "allowed" ? choice.value.names : [choice.value];
  const known = new Set(tools.map(({ kind }) => kind.value?.name));
  const missing = names.find((name) => !known.has(name));
  if (missing !== undefined) wrong.add("tool_choice", `names ${missing.slice(0, 64)}, which is not among tools`);
}

/** Whether the text is a JSON object that is no deeper than a whole request may be: adapters walk through schemas. */
function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) && !isDeeper(value, MAX_SCHEMA_DEPTH);
  } catch {
    return false;
  }
}

function isDeeper(value: unknown, limit: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (limit === 0) return true;
  if (Array.isArray(value)) return value.some((inner) => isDeeper(inner, limit - 1));
  for (const key in value) if (isDeeper((value as Record<string, unknown>)[key], limit - 1)) return true;
  return false;
}

function checkModalities(
  request: CompletionRequest,
  wrong: Violations,
  { primary, imageMakers }: { primary: Model; imageMakers: () => readonly string[] },
): void {
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
