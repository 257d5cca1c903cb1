import { expect } from "vitest";
import type { CompletionRequest } from "../../../../gen/parley/v1/completion_pb.js";
import { type Message, type Part, Role } from "../../../../gen/parley/v1/message_pb.js";
import type { FailureCode } from "../../../../src/core/failure.ts";
import type { Mode } from "../../../../src/core/router.ts";
import { says } from "../../../support/scripted-upstream.ts";
import { callInShort } from "../reply.ts";
import type { ExpectedFailure, Scenario } from "../scenario.ts";
import {
  type AttemptJson,
  type CompletionCaller,
  type FailureLook,
  given,
  isStreamed,
  jsonScenarios,
  readAdvice,
  readAttempt,
  readReport,
  refuseUnsayable,
  renamer,
  type ReportJson,
  type Said,
  type SeenResponse,
  Unsayable,
} from "./caller.ts";
import { effortOf } from "./chat.ts";
import { readEvents } from "./events.ts";

/** In words that only the Messages API has. */
const OWN: readonly Scenario[] = [
  ...jsonScenarios(
    [
      ["temperature", { temperature: "hot" }],
      ["max_tokens", { max_tokens: 1.5 }],
      ["max_tokens", { max_tokens: 3_000_000_000 }],
      ["stream", { stream: "yes" }],
      ["messages", { messages: "hello" }],
      ["messages.0.role", { messages: [{ role: "robot", content: "hello" }] }],
      ["messages.0.content.0.text", { messages: [{ role: "user", content: [{ type: "text" }] }] }],
      ["fallback_models", { fallback_models: "beta" }],
      ["model", { model: undefined }],
    ],
    { temperature: null, stop_sequences: null, tools: null, fallback_models: null, max_tokens: null, system: null },
    { alpha: [says("Hello.")] },
  ),
  {
    name: "names the field when there are no messages, also beside instructions",
    at: "http",
    fields: { messages: [], system: "Be brief." },
    expected: { failure: "invalid_request", refused: true, ownParam: "messages" },
  },
];

/** Callers of Anthropic's Messages API. */
export const MESSAGES: CompletionCaller = {
  service: "completions",
  format: "messages",
  path: () => "/v1/messages",
  unknownPath: "/v1/messages/complete",
  write,
  nameOf: (field) => toOwnName(field).replace(/\[(\d+)\]/g, ".$1"),
  read,
  look,
  hasParam: false,
  own: OWN,
};

const toOwnName = renamer([
  [/^messages\[(\d+)\]\.parts\[(\d+)\]\.tool_result\.tool_call_id$/, "messages[$1].content[$2].tool_use_id"],
  [/^messages\[(\d+)\]\.parts/, "messages[$1].content"],
  [/^max_output_tokens$/, "max_tokens"],
  [/^reasoning\.effort/, "output_config.effort"],
]);

/** As many stop sequences count; more are left out, where the contract refuses them. */
const MAX_STOPS = 4;

function write(request: CompletionRequest, mode: Mode): Record<string, unknown> {
  refuseUnsayable(request, [
    "modalities",
    "frequencyPenalty",
    "presencePenalty",
    "logprobs",
    "choiceCount",
    "seed",
    "logitBias",
    "metadata",
  ]);
  if (request.stopSequences.length > MAX_STOPS) throw new Unsayable("a fifth stop sequence");
  return {
    model: request.model,
    messages: request.messages.map(toMessage),
    ...given("fallback_models", request.fallbackModels),
    ...given("stop_sequences", request.stopSequences),
    max_tokens: request.maxOutputTokens,
    temperature: request.temperature,
    top_p: request.topP,
    output_config: request.reasoning && { effort: effortOf(request) },
    parley: request.strict ? { strict: true } : undefined,
    ...(mode === "stream" && { stream: true }),
  };
}

const ROLES: Readonly<Partial<Record<Role, string>>> = {
  [Role.SYSTEM]: "system",
  [Role.USER]: "user",
  [Role.ASSISTANT]: "assistant",
  [Role.TOOL]: "user",
};

function toMessage({ role, parts }: Message): object {
  return { role: ROLES[role], content: parts.map(toBlock) };
}

function toBlock({ kind }: Part): object {
  switch (kind.case) {
    case "text":
      return { type: "text", text: kind.value };
    case "toolResult": {
      const { toolCallId, parts } = kind.value;
      return { type: "tool_result", tool_use_id: toolCallId, content: parts.map(toBlock) };
    }
    case "image": {
      const { source, mediaType } = kind.value;
      if (source.case === "url") return { type: "image", source: { type: "url", url: source.value } };
      const data = Buffer.from(source.value!).toString("base64");
      return { type: "image", source: { type: "base64", media_type: mediaType, data } };
    }
    default:
      throw new RangeError(`scenarios have no ${kind.case} parts`);
  }
}

/** The vendor's statuses and types. */
const LOOKS: Readonly<Record<Exclude<FailureCode, "cancelled">, string>> = {
  invalid_request: "400 invalid_request_error",
  request_too_large: "413 request_too_large",
  response_too_large: "400 invalid_request_error",
  unauthenticated: "401 authentication_error",
  permission_denied: "403 permission_error",
  stopped: "403 permission_error",
  model_not_found: "404 not_found_error",
  not_found: "404 not_found_error",
  conflict: "409 invalid_request_error",
  rate_limited: "429 rate_limit_error",
  budget_spent: "429 rate_limit_error",
  overloaded: "503 overloaded_error",
  upstream_rejected: "400 invalid_request_error",
  upstream_rate_limited: "429 rate_limit_error",
  upstream_unavailable: "503 overloaded_error",
  upstream_timeout: "504 timeout_error",
  upstream_protocol: "500 api_error",
  upstream_refused_us: "500 api_error",
  deadline_exceeded: "504 timeout_error",
  internal: "500 api_error",
};

function look({ failure, after }: ExpectedFailure): FailureLook {
  if (failure === "cancelled") throw new RangeError("no caller sees a cancelled call");
  const row = LOOKS[failure];
  return { status: after === undefined ? row : row.replace(/^\d+/, "200"), code: null };
}

interface BlockJson {
  readonly type: string;
  readonly text?: string;
  readonly name?: string;
  readonly input?: object;
}

interface UsageJson {
  readonly input_tokens: number;
  readonly cache_creation_input_tokens: number;
  readonly cache_read_input_tokens: number;
  readonly output_tokens: number;
}

interface StopJson {
  readonly stop_reason: string | null;
}

/** Checked fields of a message. */
interface MessageJson extends StopJson {
  readonly type: "message";
  readonly role: string;
  readonly model: string;
  readonly content: readonly BlockJson[];
  readonly usage: UsageJson;
  readonly parley?: ReportJson;
}

interface ErrorJson {
  readonly type: "error";
  readonly error: { readonly type: string; readonly message: string };
  readonly request_id: string;
  readonly parley?: { readonly attempts: readonly AttemptJson[] };
}

/** Checked fields of an event. */
type EventJson =
  | { readonly type: "message_start"; readonly message: MessageJson }
  | { readonly type: "content_block_start"; readonly index: number; readonly content_block: BlockJson }
  | {
      readonly type: "content_block_delta";
      readonly index: number;
      readonly delta: { readonly type: string; readonly text?: string; readonly partial_json?: string };
    }
  | { readonly type: "content_block_stop"; readonly index: number }
  | { readonly type: "message_delta"; readonly delta: StopJson; readonly usage: UsageJson }
  | { readonly type: "message_stop"; readonly parley: ReportJson }
  | ErrorJson;

function read(response: SeenResponse): Said {
  expect(response.headers["request-id"]).toBe(response.headers["x-request-id"]);
  if (isStreamed(response)) return readStream(response);
  const json = JSON.parse(response.body) as MessageJson | ErrorJson;
  return json.type === "error" ? { ...NOTHING, failure: readError(json, response) } : readMessage(json);
}

const NOTHING: Said = {
  model: undefined,
  text: "",
  calls: [],
  pictures: [],
  finishReasons: [],
  usage: undefined,
  report: undefined,
  complete: false,
  failure: undefined,
};

function readMessage({ model, role, content, usage, parley, ...stop }: MessageJson): Said {
  expect(role).toBe("assistant");
  return {
    ...NOTHING,
    model,
    text: content.map(({ text = "" }) => text).join(""),
    calls: content.flatMap(({ type, name, input }) =>
      type === "tool_use" ? callInShort(name!, JSON.stringify(input)) : [],
    ),
    finishReasons: finishOf(stop),
    usage: readUsage(usage),
    report: parley && readReport(parley),
    complete: true,
  };
}

/** Reads a stream, whose blocks follow each other. */
function readStream(response: SeenResponse): Said {
  const events = readEvents(response.body).map(({ name, data }) => {
    const event = JSON.parse(data) as EventJson;
    expect(event.type).toBe(name);
    return event;
  });
  const said: { -readonly [K in keyof Said]: Said[K] } = { ...NOTHING };
  const blocks: { name: string | undefined; json: string; ended: boolean }[] = [];
  for (const event of events) {
    switch (event.type) {
      case "message_start":
        expect(event.message).toMatchObject({ type: "message", role: "assistant", content: [], stop_reason: null });
        said.model = event.message.model;
        break;
      case "content_block_start":
        expect(blocks.every(({ ended }) => ended)).toBe(true);
        expect(event.index).toBe(blocks.length);
        blocks.push({ name: event.content_block.name, json: "", ended: false });
        break;
      case "content_block_delta":
        expect(event.index).toBe(blocks.length - 1);
        said.text += event.delta.text ?? "";
        blocks.at(-1)!.json += event.delta.partial_json ?? "";
        break;
      case "content_block_stop":
        expect(event.index).toBe(blocks.length - 1);
        blocks.at(-1)!.ended = true;
        break;
      case "message_delta":
        said.finishReasons = finishOf(event.delta);
        said.usage = readUsage(event.usage);
        break;
      case "message_stop":
        expect(blocks.every(({ ended }) => ended)).toBe(true);
        said.calls = blocks.flatMap(callOf);
        said.report = readReport(event.parley);
        said.complete = true;
        break;
      case "error":
        expect(event).toBe(events.at(-1));
        said.failure = readError(event, response);
    }
  }
  return said;
}

function callOf({ name, json }: { readonly name: string | undefined; readonly json: string }): string[] {
  return name === undefined ? [] : [callInShort(name, json)];
}

const STOPS: Readonly<Record<string, string>> = {
  end_turn: "stop",
  stop_sequence: "stop",
  max_tokens: "length",
  refusal: "content_filter",
  tool_use: "tool_calls",
};

function finishOf({ stop_reason: reason }: StopJson): string[] {
  return reason === null ? [] : [STOPS[reason] ?? reason];
}

function readUsage(usage: UsageJson): string {
  const { input_tokens: input, cache_creation_input_tokens: written, cache_read_input_tokens: cached } = usage;
  return `${input + written + cached}+${usage.output_tokens}`;
}

function readError({ error, request_id: requestId, parley }: ErrorJson, response: SeenResponse): Said["failure"] {
  expect(requestId).toBe(response.headers["request-id"]);
  return {
    status: `${response.status} ${error.type}`,
    code: null,
    message: error.message,
    param: null,
    attempts: (parley?.attempts ?? []).map(readAttempt),
    ...readAdvice(response),
  };
}
