import { type CompletionRequest, Verbosity } from "../../gen/parley/v1/completion_pb.js";
import {
  type Audio,
  type File,
  type Image,
  ImageDetail,
  type Message,
  type NativeBlock,
  type Part,
  Role,
  type Video,
} from "../../gen/parley/v1/message_pb.js";
import { Modality } from "../../gen/parley/v1/modality_pb.js";
import { ReasoningEffort } from "../../gen/parley/v1/reasoning_pb.js";
import { type Tool, ToolMode } from "../../gen/parley/v1/tool_pb.js";
import { Failure, type FieldViolation } from "./failure.ts";
import { exceedsJsonSize, MAX_PARSED_DEPTH, MAX_REQUEST_JSON, measureJson } from "../encoding/json-size.ts";
import { labelViolations } from "./labels.ts";
import { adviseModels, makes } from "./model.ts";
import type { UpstreamModel } from "./provider.ts";

/** Limit of messages per request. */
export const MAX_MESSAGES = 2000;
/** Limit of parts per message, parts of tool results included. Larger than the number of images that any provider accepts per request. */
export const MAX_PARTS = 4000;
/** Limit of tools per request, and of the tools that `tool_choice` allows. */
export const MAX_TOOLS = 2000;
/** Limit of fallback models. */
export const MAX_FALLBACKS = 8;
/** Limit of requested modalities, duplicates included. */
const MAX_MODALITIES = 16;
/** Limit of stop sequences. */
export const MAX_STOPS = 4;
/** Ranges of numeric fields, both ends included, by the names of the contract. */
export const RANGES = {
  temperature: [0, 2],
  top_p: [0, 1],
  frequency_penalty: [-2, 2],
  presence_penalty: [-2, 2],
  "logprobs.top_count": [0, 20],
  choice_count: [1, 128],
  logit_bias: [-100, 100],
} as const;
/** The largest number of an int32 field. */
export const MAX_INT32 = 0x7fffffff;
/** Limits of metadata: entries, and characters of keys and values. */
export const METADATA = { maxPairs: 16, maxKeyChars: 64, maxValueChars: 512 } as const;
/** Limit of entries of `provider_options_json`. */
const MAX_PROVIDER_OPTIONS = 64;
/** Limit of characters of a session ID. */
const MAX_SESSION_ID_CHARS = 256;
/** Limit of `frames_per_second` of a video. */
const MAX_FRAMES_PER_SECOND = 24;
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
/** Collects violations, up to MAX_VIOLATIONS, to report them together. */
export class Violations {
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

  /** Throws `invalid_request` with all of them. */
  throwIfAny(): void {
    const [first] = this.list;
    if (first !== undefined)
      throw new Failure("invalid_request", `${first.field}: ${first.description}.`, { violations: this.list });
  }
}

/** The bounds of a model, or the widest of a route's targets. */
export interface Bounds {
  readonly id: string;
  readonly upstream: Pick<UpstreamModel, "maxOutputTokens" | "outputModalities">;
}

/**
 * Checks the meaning of a request, for all inbound protocols. `primary`: its model; `imageMakers`: the IDs of models that
 * generate images. Throws `invalid_request` with every invalid field.
 */
export function validate(request: CompletionRequest, primary: Bounds, imageMakers: () => readonly string[]): void {
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
  wrong.throwIfAny();
}

function checkMessages(messages: readonly Message[], wrong: Violations): void {
  if (messages.length === 0) wrong.add("messages", "must hold at least one message");
  if (messages.length > MAX_MESSAGES) return wrong.add("messages", `must hold at most ${MAX_MESSAGES} messages`);
  for (let at = 0; at < messages.length && !wrong.full; at++) checkMessage(messages[at]!, at, wrong);
  if (!wrong.full) checkToolResults(messages, wrong);
}

/** Kinds of parts by role. A tool result has the kinds of a user message. */
const ALLOWED: Readonly<Record<number, ReadonlySet<Part["kind"]["case"]>>> = {
  [Role.SYSTEM]: new Set(["text"]),
  [Role.USER]: new Set(["text", "image", "audio", "video", "file", "native"]),
  [Role.ASSISTANT]: new Set(["text", "image", "audio", "video", "file", "reasoning", "toolCall", "refusal", "native"]),
  [Role.TOOL]: new Set(["toolResult"]),
};
const IN_WORDS: Readonly<Record<number, string>> = {
  [Role.SYSTEM]: "must be text in a system message",
  [Role.USER]: "must be text, an image, audio, video or a file",
  [Role.ASSISTANT]: "must not be a tool result in an assistant message",
  [Role.TOOL]: "must be a tool result in a tool message",
};

/** Builds field paths only for violations: most conversations are long and valid. */
function checkMessage({ role, parts }: Message, at: number, wrong: Violations): void {
  if (Role[role] === undefined || role === Role.UNSPECIFIED)
    return wrong.add(`messages[${at}].role`, "must be one of system, developer, user, assistant, tool");
  // Tool results in other messages are refused below.
  const count = role === Role.TOOL ? countParts(parts) : parts.length;
  if (count > MAX_PARTS) return wrong.add(`messages[${at}].parts`, `must hold at most ${MAX_PARTS} parts`);
  for (let index = 0; index < parts.length && !wrong.full; index++) {
    const part = parts[index]!;
    if (part.kind.case !== "text" || role === Role.TOOL)
      checkPart(part, { path: `messages[${at}].parts[${index}]`, role }, wrong);
  }
  if (parts.length === 0 && role !== Role.ASSISTANT) wrong.add(`messages[${at}].parts`, "must not be empty");
}

function countParts(parts: readonly Part[]): number {
  let count = parts.length;
  for (const { kind } of parts) if (kind.case === "toolResult") count += kind.value.parts.length;
  return count;
}

function checkPart(
  { kind, $unknown }: Part,
  { path, role }: { readonly path: string; readonly role: Role },
  wrong: Violations,
): void {
  if (kind.case === undefined) {
    // A part of a later version of the contract is left out, and its field is in `Call.unrecognized`.
    if ($unknown === undefined) wrong.add(path, "must have content");
    return;
  }
  if (!ALLOWED[role]!.has(kind.case)) return wrong.add(path, IN_WORDS[role]!);
  if (kind.case === "image") checkImage(kind.value, path, wrong);
  else if (kind.case === "audio") checkAudio(kind.value, path, wrong);
  else if (kind.case === "video") checkVideo(kind.value, path, wrong);
  else if (kind.case === "file") checkFile(kind.value, path, wrong);
  else if (kind.case === "native") checkNative(kind.value, path, wrong);
  else if (kind.case === "toolResult") {
    const { toolCallId, parts } = kind.value;
    if (toolCallId === "") wrong.add(`${path}.tool_result.tool_call_id`, "is required in a tool message");
    for (let index = 0; index < parts.length && !wrong.full; index++)
      checkPart(parts[index]!, { path: `${path}.tool_result.parts[${index}]`, role: Role.USER }, wrong);
  }
}

const HTTPS = /^https:\/\//i;

function checkImage({ source, detail }: Image, at: string, wrong: Violations): void {
  if (ImageDetail[detail] === undefined) wrong.add(`${at}.image.detail`, "is not a detail");
  if (source.case === "url" && !HTTPS.test(source.value)) {
    wrong.add(at, "must be an https address or a data URL");
  } else if (source.case === undefined) wrong.add(at, "must have its data or an address");
}

/** The dialect checks the media type. A recording with an ID is an earlier answer of the provider and needs none. */
function checkAudio({ id, source, mediaType }: Audio, at: string, wrong: Violations): void {
  if (source.case === "url" && !HTTPS.test(source.value)) wrong.add(`${at}.audio.url`, "must be an https address");
  if (id === "" && source.case === "data" && source.value.length > 0 && mediaType === "")
    wrong.add(`${at}.audio.media_type`, "is required, such as audio/wav");
}

function checkVideo({ source, mediaType, framesPerSecond }: Video, at: string, wrong: Violations): void {
  if (source.case === undefined) wrong.add(`${at}.video`, "must have its data or an address");
  if (source.case === "url" && !HTTPS.test(source.value)) wrong.add(`${at}.video.url`, "must be an https address");
  if (source.case === "data" && mediaType === "") wrong.add(`${at}.video.media_type`, "is required, such as video/mp4");
  if (framesPerSecond !== undefined && !(framesPerSecond > 0 && framesPerSecond <= MAX_FRAMES_PER_SECOND))
    wrong.add(`${at}.video.frames_per_second`, `must be more than 0 and at most ${MAX_FRAMES_PER_SECOND}`);
}

function checkFile({ source }: File, at: string, wrong: Violations): void {
  if (source.case === "url" && !HTTPS.test(source.value)) wrong.add(at, "must be an https address");
}

const DIALECT = /^[a-z][a-z0-9-]{0,31}$/;

/** Accepts any name of a dialect: providers leave out blocks of other dialects, whether known or not. */
function checkNative({ dialect, json }: NativeBlock, at: string, wrong: Violations): void {
  if (!DIALECT.test(dialect)) wrong.add(`${at}.native.dialect`, "must be the name of a dialect, such as openai");
  if (!isJsonObject(json)) wrong.add(`${at}.native.json`, "must be the text of a JSON object");
}

/** Each tool call needs its result directly after the message with the call, and no other result is valid. */
function checkToolResults(messages: readonly Message[], wrong: Violations): void {
  /** Path of each call without a result, by its ID. */
  let open = new Map<string, string>();
  const requireNone = (): void => {
    const [path] = open.values();
    if (path === undefined) return;
    const missing = [...open.keys()].slice(0, 3).join(", ");
    wrong.add(path, `must be followed by tool messages for each tool_call_id; missing: ${missing}`);
    open = new Map();
  };
  messages.forEach(({ role, parts }, index) => {
    if (role !== Role.TOOL) requireNone();
    if (role !== Role.TOOL && role !== Role.ASSISTANT) return;
    parts.forEach(({ kind }, at) => {
      if (kind.case === "toolCall") open.set(kind.value.id, `messages[${index}].parts[${at}]`);
      if (kind.case !== "toolResult") return;
      const { toolCallId } = kind.value;
      if (toolCallId !== "" && !open.delete(toolCallId))
        wrong.add(
          `messages[${index}].parts[${at}].tool_result.tool_call_id`,
          "must be the ID of a call in the assistant message before it",
        );
    });
  });
  requireNone();
}

function checkSampling(request: CompletionRequest, wrong: Violations): void {
  wrong.range("temperature", request.temperature, RANGES.temperature);
  wrong.range("top_p", request.topP, RANGES.top_p);
  wrong.range("frequency_penalty", request.frequencyPenalty, RANGES.frequency_penalty);
  wrong.range("presence_penalty", request.presencePenalty, RANGES.presence_penalty);
  wrong.range("logprobs.top_count", request.logprobs?.topCount, RANGES["logprobs.top_count"]);
  wrong.range("choice_count", request.choiceCount, RANGES.choice_count);
  wrong.range("image_options.partial_count", request.imageOptions?.partialCount, [0, 3]);
  wrong.range("top_k", request.topK, [1, MAX_INT32]);
  const [min, max] = RANGES.logit_bias;
  for (const token in request.logitBias) {
    const bias = request.logitBias[token]!;
    if (bias >= min && bias <= max) continue;
    wrong.range(`logit_bias.${token.slice(0, MAX_KEY_CHARS)}`, bias, RANGES.logit_bias);
    if (wrong.full) return;
  }
}

function checkOptions(request: CompletionRequest, wrong: Violations): void {
  const { effort = ReasoningEffort.UNSPECIFIED, maxTokens } = request.reasoning ?? {};
  if (ReasoningEffort[effort] === undefined) wrong.add("reasoning.effort", "is not an effort");
  wrong.range("reasoning.max_tokens", maxTokens, [1, MAX_INT32]);
  if (Verbosity[request.verbosity] === undefined) wrong.add("verbosity", "is not a verbosity");
  if ((request.safetyIdentifier?.length ?? 0) > MAX_SAFETY_IDENTIFIER_CHARS) {
    wrong.add("safety_identifier", `must be at most ${MAX_SAFETY_IDENTIFIER_CHARS} characters`);
  }
  if ((request.sessionId?.length ?? 0) > MAX_SESSION_ID_CHARS)
    wrong.add("session_id", `must be at most ${MAX_SESSION_ID_CHARS} characters`);
  wrong.range("max_response_bytes", request.maxResponseBytes, [1, MAX_INT32]);
  if (Object.keys(request.providerOptionsJson).length > MAX_PROVIDER_OPTIONS)
    wrong.add("provider_options_json", `must hold at most ${MAX_PROVIDER_OPTIONS} fields`);
}

function checkLimits(request: CompletionRequest, primary: Bounds, wrong: Violations): void {
  const { maxOutputTokens } = primary.upstream;
  wrong.range("max_output_tokens", request.maxOutputTokens, [1, maxOutputTokens]);
  const stops = request.stopSequences;
  if (stops.length > MAX_STOPS) wrong.add("stop_sequences", `must hold at most ${MAX_STOPS} sequences`);
  stops.slice(0, MAX_STOPS).forEach((stop, index) => {
    if (stop === "") wrong.add(`stop_sequences[${index}]`, "must not be empty");
  });
  if (request.fallbackModels.length > MAX_FALLBACKS) {
    wrong.add("fallback_models", `must hold at most ${MAX_FALLBACKS} models`);
  }
  checkLabels(request.metadata, wrong);
  for (const { field, description } of labelViolations(request.requiredLabels)) wrong.add(field, description);
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
      wrong.add("response_format.json_schema.schema_json", "must be a JSON schema, which is an object");
    }
  }
}

function checkTool({ kind, $unknown }: Tool, at: number, wrong: Violations): void {
  if (kind.case === undefined) {
    if ($unknown === undefined) wrong.add(`tools[${at}]`, "must be a function, a custom tool or a native tool");
    return;
  }
  if (kind.case === "native") return checkNative(kind.value, `tools[${at}]`, wrong);
  if (!NAME.test(kind.value.name))
    wrong.add(`tools[${at}].${kind.case}.name`, "must be 1 to 64 letters, digits, _ or -");
  if (kind.case === "function" && kind.value.parametersJson !== "" && !isJsonObject(kind.value.parametersJson)) {
    wrong.add(`tools[${at}].function.parameters_json`, "must be a JSON schema, which is an object");
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
  const known = new Set(tools.map(({ kind }) => (kind.case === "native" ? undefined : kind.value?.name)));
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

function jsonTexts({ tools, messages, responseFormat, providerOptionsJson }: CompletionRequest): string[] {
  const texts: string[] = Object.values(providerOptionsJson);
  for (const { kind } of tools) {
    if (kind.case === "function") texts.push(kind.value.parametersJson);
    else if (kind.case === "custom") texts.push(kind.value.formatJson);
    else if (kind.case === "native") texts.push(kind.value.json);
  }
  for (const { parts } of messages) addJsonTexts(parts, texts);
  if (responseFormat?.format.case === "jsonSchema") texts.push(responseFormat.format.value.schemaJson);
  return texts;
}

function addJsonTexts(parts: readonly Part[], texts: string[]): void {
  for (const { kind } of parts) {
    if (kind.case === "toolCall" && kind.value.input.case === "argumentsJson") texts.push(kind.value.input.value);
    else if (kind.case === "native") texts.push(kind.value.json);
    else if (kind.case === "toolResult") addJsonTexts(kind.value.parts, texts);
  }
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

const ANSWER_MODALITIES: ReadonlySet<Modality> = new Set([Modality.TEXT, Modality.IMAGE, Modality.AUDIO]);

function checkModalities(
  request: CompletionRequest,
  wrong: Violations,
  { primary, imageMakers }: { primary: Bounds; imageMakers: () => readonly string[] },
): void {
  if (request.modalities.length === 0) return;
  if (request.modalities.length > MAX_MODALITIES)
    return wrong.add("modalities", `must hold at most ${MAX_MODALITIES} entries`);
  const wanted = new Set(request.modalities);
  for (const modality of wanted) {
    if (!ANSWER_MODALITIES.has(modality)) wrong.add("modalities", "must be of text, image and audio");
  }
  if (!wanted.has(Modality.TEXT)) wrong.add("modalities", "must include text");
  if (wanted.has(Modality.IMAGE) && !makes(primary, Modality.IMAGE)) {
    const advice = adviseModels(imageMakers());
    wrong.add("modalities", `must not include image: ${primary.id} does not make pictures${advice}`);
  }
  if (wanted.has(Modality.AUDIO) && !makes(primary, Modality.AUDIO)) {
    wrong.add("modalities", `must not include audio: ${primary.id} does not make speech`);
  }
  if (wanted.has(Modality.AUDIO) && request.audioOptions === undefined)
    wrong.add("audio_options", "is required for audio");
}
