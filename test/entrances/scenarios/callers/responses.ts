import { expect } from "vitest";
import type { CompletionRequest } from "../../../../gen/parley/v1/completion_pb.js";
import { type Message, type Part, Role } from "../../../../gen/parley/v1/message_pb.js";
import { Modality } from "../../../../gen/parley/v1/modality_pb.js";
import type { Mode } from "../../../../src/core/router.ts";
import { says } from "../../../support/scripted-upstream.ts";
import { callInShort } from "../reply.ts";
import type { ExpectedFailure } from "../scenario.ts";
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
import { effortOf, type ErrorJson, imageUrl, lookOfOpenAi, readOpenAiError } from "./chat.ts";
import { readEvents } from "./events.ts";

/** Callers of OpenAI's Responses API. */
export const RESPONSES: CompletionCaller = {
  service: "completions",
  format: "responses",
  path: () => "/v1/responses",
  unknownPath: "/v1/responses/complete",
  write,
  nameOf: renamer([
    [/^messages\[(\d+)\]\.parts\[0\]\.tool_result\.tool_call_id$/, "input[$1].call_id"],
    [/^messages\[(\d+)\]\.parts\[(\d+)\]$/, "input[$1].content[$2]"],
    [/^messages\[(\d+)\]\.parts$/, "input[$1]"],
    [/^messages$/, "input"],
    [/^modalities$/, "tools[0].type"],
    [/^logprobs\.top_count$/, "top_logprobs"],
  ]),
  read,
  look,
  hasParam: true,
  own: jsonScenarios(
    [
      ["temperature", { temperature: "hot" }],
      ["max_output_tokens", { max_output_tokens: 1.5 }],
      ["max_output_tokens", { max_output_tokens: 3_000_000_000 }],
      ["stream", { stream: "yes" }],
      ["input", { input: 7 }],
      ["input[0].role", { input: [{ role: "robot", content: "hello" }] }],
      ["fallback_models", { fallback_models: "beta" }],
      ["model", { model: undefined }],
    ],
    { temperature: null, tools: null, fallback_models: null, max_output_tokens: null, include: null },
    { alpha: [says("Hello.")] },
  ),
};

function write(request: CompletionRequest, mode: Mode): Record<string, unknown> {
  refuseUnsayable(request, [
    "stopSequences",
    "frequencyPenalty",
    "presencePenalty",
    "choiceCount",
    "seed",
    "logitBias",
  ]);
  return {
    model: request.model,
    input: request.messages.map(toItem),
    ...given("fallback_models", request.fallbackModels),
    ...given("tools", toTools(request)),
    max_output_tokens: request.maxOutputTokens,
    temperature: request.temperature,
    top_p: request.topP,
    ...(request.logprobs && {
      include: ["message.output_text.logprobs"],
      top_logprobs: request.logprobs.topCount,
    }),
    reasoning: request.reasoning && { effort: effortOf(request) },
    metadata: Object.keys(request.metadata).length > 0 ? request.metadata : undefined,
    parley: request.strict ? { strict: true } : undefined,
    ...(mode === "stream" && { stream: true }),
  };
}

/** Pictures are asked for by a tool, beside text; there is no word for speech, or for pictures alone. */
function toTools({ modalities }: CompletionRequest): object[] {
  if (modalities.length === 0) return [];
  if (modalities.join() !== [Modality.TEXT, Modality.IMAGE].join()) throw new Unsayable("modalities");
  return [{ type: "image_generation" }];
}

const ROLES: Readonly<Partial<Record<Role, string>>> = {
  [Role.SYSTEM]: "system",
  [Role.USER]: "user",
  [Role.ASSISTANT]: "assistant",
};

function toItem({ role, parts }: Message): object {
  const [first] = parts;
  if (first?.kind.case !== "toolResult") return { role: ROLES[role], content: parts.map(toContent) };
  const { toolCallId, parts: output } = first.kind.value;
  return { type: "function_call_output", call_id: toolCallId, output: output.map(toContent) };
}

function toContent({ kind }: Part): object {
  if (kind.case === "text") return { type: "input_text", text: kind.value };
  if (kind.case !== "image") throw new RangeError(`scenarios have no ${kind.case} parts`);
  return { type: "input_image", image_url: imageUrl(kind.value) };
}

/** A failure in the middle of a stream is a failed response, whose codes are other words. */
function look(expected: ExpectedFailure): FailureLook {
  if (expected.after === undefined) return lookOfOpenAi(expected);
  const isLimited = expected.failure === "rate_limited" || expected.failure === "upstream_rate_limited";
  return { status: "200 failed", code: isLimited ? "rate_limit_exceeded" : "server_error" };
}

interface ItemJson {
  readonly type: string;
  readonly status?: string;
  readonly name?: string;
  readonly arguments?: string;
  readonly result?: string;
  readonly content?: readonly { readonly type: string; readonly text?: string; readonly refusal?: string }[];
}

/** Checked fields of a response. */
interface ResponseJson {
  readonly object: string;
  readonly status: string;
  readonly model: string;
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly incomplete_details: { readonly reason: string } | null;
  readonly output: readonly ItemJson[];
  readonly usage?: { readonly input_tokens: number; readonly output_tokens: number };
  readonly parley?: ReportJson;
}

interface EventJson {
  readonly type: string;
  readonly sequence_number: number;
  readonly response?: ResponseJson;
  readonly delta?: string;
}

/** Events that end a stream: a complete answer, or a broken one. */
const LAST = /^response\.(completed|incomplete|failed)$/;

function read(response: SeenResponse): Said {
  if (!isStreamed(response)) {
    const json = JSON.parse(response.body) as ResponseJson | { readonly error: ErrorJson };
    return "object" in json ? readResponse(json) : { ...NOTHING, failure: readOpenAiError(json.error, response) };
  }
  const events = readEvents(response.body).map(({ name, data }) => {
    const event = JSON.parse(data) as EventJson;
    expect(event.type).toBe(name);
    return event;
  });
  expect(events.map((event) => event.sequence_number)).toEqual(events.map((_, at) => at));
  expect(events.slice(0, 2).map(({ type }) => type)).toEqual(["response.created", "response.in_progress"]);
  expect(events.filter(({ type }) => LAST.test(type))).toEqual(LAST.test(events.at(-1)!.type) ? [events.at(-1)] : []);
  const text = events.map((event) => (isText(event) ? event.delta : "")).join("");
  const last = events.at(-1)!;
  if (!LAST.test(last.type)) return { ...NOTHING, text, model: events[0]?.response?.model };
  // The last event repeats what the others said.
  const said = readResponse(last.response!);
  expect(`response.${last.response!.status}`).toBe(last.type);
  expect(said.text).toBe(text);
  if (said.failure === undefined) return said;
  return { ...said, failure: { ...said.failure, ...readAdvice(response) } };
}

const isText = ({ type }: EventJson): boolean =>
  type === "response.output_text.delta" || type === "response.refusal.delta";

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

function readResponse(json: ResponseJson): Said {
  const { status, model, output, usage, parley, error } = json;
  const isDone = status === "completed" || status === "incomplete";
  return {
    model,
    text: output.flatMap(({ content = [] }) => content.map((part) => part.text ?? part.refusal ?? "")).join(""),
    calls: isDone ? output.flatMap(callOf) : [],
    pictures: output.flatMap(({ type, result }) => (type === "image_generation_call" ? (result ?? "") : [])),
    finishReasons: isDone ? [finishOf(json)] : [],
    usage: usage && `${usage.input_tokens}+${usage.output_tokens}`,
    report: isDone ? parley && readReport(parley) : undefined,
    complete: isDone && error === null,
    failure: error === null ? undefined : readFailed(error, status, parley),
  };
}

function callOf({ type, name, arguments: args }: ItemJson): string[] {
  return type === "function_call" ? [callInShort(name!, args!)] : [];
}

const INCOMPLETE: Readonly<Record<string, string>> = { max_output_tokens: "length", content_filter: "content_filter" };

function finishOf({ incomplete_details: incomplete, output }: ResponseJson): string {
  if (incomplete !== null) return INCOMPLETE[incomplete.reason] ?? incomplete.reason;
  return output.some(({ type }) => type === "function_call") ? "tool_calls" : "stop";
}

function readFailed(
  { code, message }: NonNullable<ResponseJson["error"]>,
  status: string,
  parley: { readonly attempts?: readonly AttemptJson[] } | undefined,
): NonNullable<Said["failure"]> {
  const attempts = (parley?.attempts ?? []).map(readAttempt);
  return { status: `200 ${status}`, code, message, param: null, attempts, retryAfterS: undefined, final: undefined };
}
