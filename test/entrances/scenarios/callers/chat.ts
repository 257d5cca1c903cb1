import type { CompletionRequest } from "../../../../gen/parley/v1/completion_pb.js";
import { type Message, type Part, Role } from "../../../../gen/parley/v1/message_pb.js";
import { Modality } from "../../../../gen/parley/v1/modality_pb.js";
import { ReasoningEffort } from "../../../../gen/parley/v1/reasoning_pb.js";
import type { Mode } from "../../../../src/core/router.ts";
import { says } from "../../../support/scripted-upstream.ts";
import { LOOKS } from "../failures.ts";
import { callInShort, type SeenFailure } from "../reply.ts";
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
  renamer,
  type ReportJson,
  type Said,
  type SeenResponse,
} from "./caller.ts";

const hello = { alpha: [says("Hello.")] };

/** In words that only chat completions have. */
const OWN: readonly Scenario[] = [
  ...jsonScenarios(
    [
      ["temperature", { temperature: "hot" }],
      ["max_tokens", { max_tokens: 1.5 }],
      ["max_tokens", { max_tokens: 3_000_000_000 }],
      ["stream", { stream: "yes" }],
      ["messages", { messages: "hello" }],
      ["messages[0].role", { messages: [{ role: "robot", content: "hello" }] }],
      ["messages[0].content[0].type", { messages: [{ role: "user", content: [{ type: "smell" }] }] }],
      ["fallback_models", { fallback_models: "beta" }],
      ["modalities[0]", { modalities: ["smell"] }],
      ["model", { model: undefined }],
      ["model", { model: 7, temperature: "hot" }],
    ],
    { temperature: null, stop: null, tools: null, fallback_models: null, max_tokens: null },
    hello,
  ),
  {
    name: "streams no usage to a client that did not request it",
    at: "http",
    mode: "stream",
    fields: { stream_options: undefined },
    upstream: hello,
    expected: { answer: { usage: undefined } },
  },
  {
    name: "refuses alternatives of each token without log probabilities",
    at: "http",
    fields: { top_logprobs: 1 },
    expected: { failure: "invalid_request", ownParam: "top_logprobs", refused: true },
  },
];

/** Callers of OpenAI's chat completions. */
export const CHAT: CompletionCaller = {
  service: "completions",
  format: "chat",
  path: () => "/v1/chat/completions",
  unknownPath: "/v1/chat/complete",
  write: toOpenAiJson,
  nameOf: renamer([
    [/^messages\[(\d+)\]\.parts\[0\]\.tool_result\.tool_call_id$/, "messages[$1].tool_call_id"],
    [/^messages\[(\d+)\]\.parts/, "messages[$1].content"],
    [/^logprobs\.top_count$/, "top_logprobs"],
    [/^choice_count$/, "n"],
    [/^max_output_tokens$/, "max_tokens"],
    [/^stop_sequences/, "stop"],
    [/^reasoning\.effort/, "reasoning_effort"],
  ]),
  read: readChatReply,
  look: lookOfOpenAi,
  hasParam: true,
  own: OWN,
};

/** Errors of OpenAI's formats: status and `error.type`, with an `error.code`. */
export function lookOfOpenAi(expected: ExpectedFailure): FailureLook {
  const { failure, detail, after } = expected;
  if (failure === "cancelled") throw new RangeError("no caller sees a cancelled call");
  const { http, code } = LOOKS[failure];
  return { status: after === undefined ? http : http.replace(/^\d+/, "200"), code: detail ?? code };
}

const WORDS = { [Modality.TEXT]: "text", [Modality.IMAGE]: "image", [Modality.AUDIO]: "audio" } as const;
const ROLES = { [Role.SYSTEM]: "system", [Role.USER]: "user", [Role.ASSISTANT]: "assistant", [Role.TOOL]: "tool" };

/** The request as JSON of an OpenAI client, with the fields that scenarios use. */
export function toOpenAiJson(request: CompletionRequest, mode: Mode): Record<string, unknown> {
  return {
    model: request.model,
    messages: request.messages.map(toOpenAiMessage),
    ...given("fallback_models", request.fallbackModels),
    ...given(
      "modalities",
      request.modalities.map((modality) => WORDS[modality as keyof typeof WORDS]),
    ),
    ...given("stop", request.stopSequences),
    max_tokens: request.maxOutputTokens,
    temperature: request.temperature,
    top_p: request.topP,
    frequency_penalty: request.frequencyPenalty,
    presence_penalty: request.presencePenalty,
    logprobs: request.logprobs && true,
    top_logprobs: request.logprobs?.topCount,
    n: request.choiceCount,
    reasoning_effort: effortOf(request),
    seed: request.seed === undefined ? undefined : Number(request.seed),
    logit_bias: Object.keys(request.logitBias).length > 0 ? request.logitBias : undefined,
    metadata: Object.keys(request.metadata).length > 0 ? request.metadata : undefined,
    parley: request.strict ? { strict: true } : undefined,
    ...(mode === "stream" && { stream: true, stream_options: { include_usage: true } }),
  };
}

/** The effort in the words of all formats but Gemini's. */
export function effortOf({ reasoning }: CompletionRequest): string | undefined {
  return reasoning === undefined ? undefined : ReasoningEffort[reasoning.effort].toLowerCase();
}

function toOpenAiMessage({ role, parts }: Message): object {
  const name = ROLES[role as keyof typeof ROLES];
  const [first] = parts;
  if (first?.kind.case !== "toolResult") return { role: name, content: parts.map(toOpenAiPart) };
  const { toolCallId, parts: result } = first.kind.value;
  return { role: name, content: result.map(toOpenAiPart), tool_call_id: toolCallId === "" ? undefined : toolCallId };
}

function toOpenAiPart({ kind }: Part): object {
  if (kind.case === "text") return { type: "text", text: kind.value };
  if (kind.case !== "image") throw new RangeError(`scenarios have no ${kind.case} parts`);
  return { type: "image_url", image_url: { url: imageUrl(kind.value) } };
}

/** An image as a URL: its address, or a data URL. */
export function imageUrl({ source, mediaType }: Extract<Part["kind"], { case: "image" }>["value"]): string {
  return source.case === "data"
    ? `data:${mediaType};base64,${Buffer.from(source.value).toString("base64")}`
    : String(source.value);
}

interface PictureJson {
  readonly image_url: { readonly url: string };
}

interface SpeechJson {
  readonly content?:
    | string
    | null
    | readonly ({ readonly type: string; readonly text?: string } & Partial<PictureJson>)[];
  readonly images?: readonly PictureJson[];
  readonly tool_calls?: readonly {
    readonly index?: number;
    readonly function: { readonly name?: string; readonly arguments: string };
  }[];
}

/** `error` of OpenAI's formats. */
export interface ErrorJson {
  readonly type: string;
  readonly message: string;
  readonly param: string | null;
  readonly code?: string | null;
  readonly attempts?: readonly AttemptJson[];
}

/** Checked fields of a completion, a chunk and an error. */
interface ReplyJson {
  readonly model?: string;
  readonly choices?: readonly {
    readonly message?: SpeechJson;
    readonly delta?: SpeechJson;
    readonly finish_reason: string | null;
  }[];
  readonly usage?: { readonly prompt_tokens: number; readonly completion_tokens: number } | null;
  readonly parley?: ReportJson;
  readonly error?: ErrorJson;
}

const DONE = "[DONE]";

function readChatReply(response: SeenResponse): Said {
  const { body } = response;
  const streamed = isStreamed(response);
  const events = streamed ? body.split("\n\n").flatMap((event) => /^data: (.*)$/.exec(event)?.[1] ?? []) : [body];
  const parts = events.filter((event) => event !== DONE).map((event) => JSON.parse(event) as ReplyJson);
  const choices = parts.flatMap((part) => part.choices ?? []);
  const speech = choices.map(({ message, delta }) => message ?? delta ?? {});
  const usage = parts.map((part) => part.usage).find((each) => each != null);
  const report = parts.map((part) => part.parley).find((each) => each !== undefined);
  const error = parts.map((part) => part.error).find((each) => each !== undefined);
  return {
    model: parts[0]?.model,
    text: speech.map(textOf).join(""),
    calls: error === undefined ? callsOf(speech) : [],
    pictures: speech.flatMap(picturesOf),
    finishReasons: choices.flatMap(({ finish_reason: reason }) => reason ?? []),
    usage: usage && `${usage.prompt_tokens}+${usage.completion_tokens}`,
    report: report && readReport(report),
    complete: streamed ? events.at(-1) === DONE : error === undefined,
    failure: error && readOpenAiError(error, response),
  };
}

function textOf({ content }: SpeechJson): string {
  if (typeof content === "string") return content;
  return (content ?? []).map((part) => part.text ?? "").join("");
}

/** The calls of one choice, put together from their pieces. */
function callsOf(speech: readonly SpeechJson[]): string[] {
  const calls = new Map<number, { name: string; args: string }>();
  for (const { tool_calls: pieces = [] } of speech) {
    pieces.forEach(({ index, function: { name = "", arguments: args } }, at) => {
      const before = calls.get(index ?? at) ?? { name: "", args: "" };
      calls.set(index ?? at, { name: before.name + name, args: before.args + args });
    });
  }
  return [...calls.values()].map(({ name, args }) => callInShort(name, args));
}

function picturesOf({ content, images = [] }: SpeechJson): string[] {
  const parts = Array.isArray(content) ? (content as readonly Partial<PictureJson>[]) : [];
  return [...parts, ...images].flatMap(({ image_url: image }) =>
    image === undefined ? [] : image.url.replace("data:image/png;base64,", ""),
  );
}

/** Reads an error of OpenAI's formats. */
export function readOpenAiError(error: ErrorJson, response: SeenResponse): SeenFailure {
  return {
    status: `${response.status} ${error.type}`,
    code: error.code === undefined ? "absent" : error.code,
    message: error.message,
    param: error.param,
    attempts: (error.attempts ?? []).map(readAttempt),
    ...readAdvice(response),
  };
}
