import type { CompletionRequest } from "../../../gen/parley/v1/completion_pb.js";
import { type Message, type Part, Role } from "../../../gen/parley/v1/message_pb.js";
import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import { ToolMode } from "../../../gen/parley/v1/tool_pb.js";
import { NAME, RANGES } from "../../core/validate.ts";
import type { NameOf } from "../../formats/format.ts";
import { Refusal } from "../answer.ts";
import { measureImage } from "../image-input.ts";

/*
 * Rules of OpenAI that the format does not have: it accepts fields of other servers, which the contract does not show, and
 * more values.
 */

/** The fields of requests, and of the objects in them that have no others. `[]`: of each element. */
export const FIELDS = {
  chat: "model messages max_completion_tokens max_tokens temperature top_p n stop stream stream_options presence_penalty frequency_penalty logit_bias logprobs top_logprobs seed tools tool_choice parallel_tool_calls response_format reasoning_effort verbosity modalities audio prediction metadata store service_tier prompt_cache_key prompt_cache_options prompt_cache_retention safety_identifier user moderation web_search_options functions function_call",
  "chat.stream_options": "include_usage include_obfuscation",
  "chat.tools[]": "type function",
  "chat.tools[].function": "name description parameters strict",
  "chat.response_format": "type json_schema",
  "chat.response_format.json_schema": "name description schema strict",
  embeddings: "model input encoding_format dimensions user",
} as const;

const MAX_STOPS = 4;
const MAX_TOOLS = 128;
const MAX_CALL_ID_CHARS = 40;

function refuseUnless(isRight: boolean, message: string, field: string): void {
  if (!isRight) throw new Refusal(400, message, { field, code: "invalid_value" });
}

/** The fields of a body that the contract does not show. */
interface Body {
  readonly stream?: unknown;
  readonly stream_options?: unknown;
  readonly tools?: unknown;
}

/** Checks the rules that the format does not have. Throws `Refusal` (400) for the first violation. */
export function checkRules(request: CompletionRequest, nameOf: NameOf, body: Body): void {
  const { messages, stopSequences: stops } = request;
  refuseUnless(
    messages.length > 0,
    "Invalid 'messages': empty array. Expected an array with minimum length 1.",
    "messages",
  );
  refuseUnless(stops.length <= MAX_STOPS, `Invalid 'stop': at most ${MAX_STOPS} sequences are allowed.`, "stop");
  refuseUnless(
    body.stream_options == null || body.stream === true,
    "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
    "stream_options",
  );
  refuseUnless(
    !request.modalities.includes(Modality.IMAGE),
    "Invalid value: 'image'. Supported values are: 'text', 'audio'.",
    "modalities",
  );
  checkRanges(request, nameOf);
  checkTools(request, body);
  messages.forEach((message, index) => checkParts(message, `messages[${index}]`));
  checkToolMessages(messages);
}

function checkRanges(request: CompletionRequest, nameOf: NameOf): void {
  const values: Readonly<Record<Exclude<keyof typeof RANGES, "logit_bias">, number | undefined>> = {
    temperature: request.temperature,
    top_p: request.topP,
    frequency_penalty: request.frequencyPenalty,
    presence_penalty: request.presencePenalty,
    "logprobs.top_count": request.logprobs?.topCount,
    choice_count: request.choiceCount,
  };
  for (const [name, value] of Object.entries(values))
    checkRange(nameOf(name), value, RANGES[name as keyof typeof RANGES]);
  checkRange(nameOf("max_output_tokens"), request.maxOutputTokens, [1, Infinity]);
  for (const [token, bias] of Object.entries(request.logitBias))
    checkRange(`logit_bias.${token}`, bias, RANGES.logit_bias);
}

function checkRange(field: string, value: number | undefined, [least, most]: readonly [number, number]): void {
  if (value === undefined || (value >= least && value <= most)) return;
  const [bound, code] =
    value < least ? [`>= ${least}`, "integer_below_min_value"] : [`<= ${most}`, "integer_above_max_value"];
  throw new Refusal(400, `Invalid '${field}': expected a value ${bound}.`, { field, code });
}

function checkTools({ tools, toolChoice, responseFormat }: CompletionRequest, body: Body): void {
  const names = tools.map(({ kind }) => (kind.case === "function" ? kind.value.name : ""));
  refuseUnless(
    !Array.isArray(body.tools) || body.tools.length > 0,
    "Invalid 'tools': empty array. Expected an array with minimum length 1.",
    "tools",
  );
  refuseUnless(names.length <= MAX_TOOLS, `Invalid 'tools': at most ${MAX_TOOLS} are allowed.`, "tools");
  names.forEach((name, index) => checkName(name, `tools[${index}].function.name`));
  const format = responseFormat?.format;
  if (format?.case === "jsonSchema") checkName(format.value.name, "response_format.json_schema.name");
  const { choice } = toolChoice ?? {};
  const isForced = choice?.case !== "mode" ? choice?.case !== undefined : choice.value === ToolMode.REQUIRED;
  const field = "tool_choice";
  refuseUnless(!isForced || names.length > 0, "'tool_choice' is only allowed when 'tools' are specified.", field);
  if (choice?.case !== "function") return;
  refuseUnless(names.includes(choice.value), `Tool choice '${choice.value}' not found in 'tools'.`, field);
}

function checkName(name: string, field: string): void {
  refuseUnless(
    NAME.test(name),
    `Invalid '${field}': expected a string that matches the pattern '${NAME.source}'.`,
    field,
  );
}

/** Kinds of parts by role; those of a result are in a `tool` message. */
const KINDS: Readonly<Partial<Record<Role, readonly Part["kind"]["case"][]>>> = {
  [Role.SYSTEM]: ["text"],
  [Role.USER]: ["text", "image", "audio", "file"],
  [Role.ASSISTANT]: ["text", "refusal", "reasoning", "audio", "toolCall"],
  [Role.TOOL]: ["text"],
};

function checkParts({ role, parts }: Message, path: string): void {
  const inner = parts.flatMap((part) => (part.kind.case === "toolResult" ? part.kind.value.parts : [part]));
  for (const [index, { kind }] of inner.entries()) {
    const field = `${path}.content[${index}]`;
    refuseUnless(KINDS[role]?.includes(kind.case) === true, `Invalid value for '${field}.type': ${kind.case}.`, field);
    if (kind.case === "toolCall") {
      const isRight = kind.value.input.case === "argumentsJson" && kind.value.id.length <= MAX_CALL_ID_CHARS;
      refuseUnless(isRight, `Invalid '${path}.tool_calls': string too long, or not a function.`, `${path}.tool_calls`);
    }
    if (kind.case !== "image") continue;
    const { source } = kind.value;
    const isAddress = source.case === "url" && /^https?:\/\/\S+$/u.test(source.value);
    const isImage = source.case === "data" && measureImage(Buffer.from(source.value)) !== undefined;
    refuseUnless(isAddress || isImage, "You uploaded an unsupported image.", `${field}.image_url`);
  }
}

/** Checks that `tool` messages with the results directly follow the calls of an assistant message. */
function checkToolMessages(messages: readonly Message[]): void {
  const open = new Set<string>();
  for (const [index, { role, parts }] of messages.entries()) {
    if (role !== Role.TOOL) refuseUnansweredCalls(open, index);
    for (const { kind } of parts) {
      if (kind.case === "toolCall") open.add(kind.value.id);
      if (kind.case === "toolResult")
        refuseUnless(
          open.delete(kind.value.toolCallId),
          "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
          `messages.[${index}].role`,
        );
    }
  }
  refuseUnansweredCalls(open, messages.length);
}

function refuseUnansweredCalls(open: ReadonlySet<string>, index: number): void {
  refuseUnless(
    open.size === 0,
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The " +
      `following tool_call_ids did not have response messages: ${[...open].join(", ")}`,
    `messages.[${index}].role`,
  );
}
