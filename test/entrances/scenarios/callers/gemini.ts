import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { expect } from "vitest";
import { ErrorReason } from "../../../../gen/parley/v1/error_pb.js";
import type { CompletionRequest } from "../../../../gen/parley/v1/completion_pb.js";
import { type Message, type Part, Role } from "../../../../gen/parley/v1/message_pb.js";
import { Modality } from "../../../../gen/parley/v1/modality_pb.js";
import { ReasoningEffort } from "../../../../gen/parley/v1/reasoning_pb.js";
import { AttemptListSchema } from "../../../../gen/parley/v1/report_pb.js";
import { reasonOf } from "../../../../src/core/error-reason.ts";
import type { FailureCode } from "../../../../src/core/failure.ts";
import { says } from "../../../support/scripted-upstream.ts";
import { LOOKS as COMMON_LOOKS } from "../failures.ts";
import { readAttempt } from "../grpc-reply.ts";
import { callInShort } from "../reply.ts";
import type { ExpectedFailure, Scenario } from "../scenario.ts";
import {
  type CompletionCaller,
  type FailureLook,
  given,
  isStreamed,
  jsonScenarios,
  readAdvice,
  readReport,
  refuseUnsayable,
  renamer,
  type ReportJson,
  type Said,
  type SeenResponse,
  Unsayable,
} from "./caller.ts";

const hello = { alpha: [says("Hello.")] };

/** In words that only Gemini's format has. */
const OWN: readonly Scenario[] = [
  ...jsonScenarios(
    [
      ["generationConfig.temperature", { generationConfig: { temperature: "hot" } }],
      ["generationConfig.maxOutputTokens", { generationConfig: { maxOutputTokens: 1.5 } }],
      ["generationConfig.maxOutputTokens", { generationConfig: { maxOutputTokens: 3_000_000_000 } }],
      ["contents", { contents: "hello" }],
      ["contents[0].role", { contents: [{ role: "robot", parts: [{ text: "hello" }] }] }],
      ["contents[0].parts[0].text", { contents: [{ role: "user", parts: [{ text: 7 }] }] }],
      ["fallbackModels", { fallbackModels: "beta" }],
      ["generationConfig.responseModalities", { generationConfig: { responseModalities: ["SMELL"] } }],
    ],
    { generationConfig: null, tools: null, fallbackModels: null, systemInstruction: null },
    hello,
  ),
  {
    name: "refuses alternatives of each token without log probabilities",
    at: "http",
    fields: { generationConfig: { logprobs: 1 } },
    expected: { failure: "invalid_request", ownParam: "generationConfig.logprobs", refused: true },
  },
];

/** Callers of Gemini's `generateContent`. */
export const GEMINI: CompletionCaller = {
  service: "completions",
  format: "gemini",
  path: (model, mode) =>
    `/v1beta/models/${model}:${mode === "stream" ? "streamGenerateContent?alt=sse" : "generateContent"}`,
  unknownPath: "/v1beta/models/alpha:complete",
  write,
  nameOf: renamer([
    [/^messages\[(\d+)\]\.parts\[(\d+)\]\.tool_result\.tool_call_id$/, "contents[$1].parts[$2].functionResponse.id"],
    [/^messages\[/, "contents["],
    [/^messages$/, "contents"],
    [/^fallback_models/, "fallbackModels"],
    [/^metadata/, "labels"],
    [/^modalities$/, "generationConfig.responseModalities"],
    [/^logprobs\.top_count$/, "generationConfig.logprobs"],
    [/^choice_count$/, "generationConfig.candidateCount"],
    [/^reasoning\.effort/, "generationConfig.thinkingConfig.thinkingLevel"],
    [/^max_output_tokens$/, "generationConfig.maxOutputTokens"],
    [/^stop_sequences/, "generationConfig.stopSequences"],
    [/^top_p$/, "generationConfig.topP"],
    [/^frequency_penalty$/, "generationConfig.frequencyPenalty"],
    [/^presence_penalty$/, "generationConfig.presencePenalty"],
    [/^(temperature|seed)\b/, "generationConfig.$1"],
  ]),
  read,
  look: lookOfGemini,
  hasParam: true,
  own: OWN,
};

/** As many stop sequences count; more are left out, where the contract refuses them. */
const MAX_STOPS = 4;

function write(request: CompletionRequest): Record<string, unknown> {
  refuseUnsayable(request, ["logitBias"]);
  if (request.model === "") throw new Unsayable("no model");
  if (request.stopSequences.length > MAX_STOPS) throw new Unsayable("a fifth stop sequence");
  const config = {
    maxOutputTokens: request.maxOutputTokens,
    temperature: request.temperature,
    topP: request.topP,
    frequencyPenalty: request.frequencyPenalty,
    presencePenalty: request.presencePenalty,
    candidateCount: request.choiceCount,
    seed: request.seed === undefined ? undefined : Number(request.seed),
    ...given("stopSequences", request.stopSequences),
    ...given("responseModalities", toModalities(request)),
    ...(request.logprobs && { responseLogprobs: true, logprobs: request.logprobs.topCount }),
    ...(request.reasoning && { thinkingConfig: { thinkingLevel: ReasoningEffort[request.reasoning.effort] } }),
  };
  return {
    contents: request.messages.map(toContent),
    generationConfig: config,
    ...given("fallbackModels", request.fallbackModels),
    ...(Object.keys(request.metadata).length > 0 && { labels: request.metadata }),
    ...(request.strict && { parley: { strict: true } }),
  };
}

/** Pictures alone mean pictures beside text, and there is no speech. */
function toModalities({ modalities }: CompletionRequest): string[] {
  if (modalities.length > 0 && modalities.join() !== [Modality.TEXT, Modality.IMAGE].join())
    throw new Unsayable("modalities");
  return modalities.map((modality) => Modality[modality]);
}

function toContent({ role, parts }: Message): object {
  // A content without parts is left out.
  if (parts.length === 0) throw new Unsayable("a message without parts");
  return { role: role === Role.ASSISTANT ? "model" : "user", parts: parts.map(toPart) };
}

function toPart({ kind }: Part): object {
  switch (kind.case) {
    case "text":
      return { text: kind.value };
    case "toolResult": {
      const { toolCallId, parts } = kind.value;
      return { functionResponse: { id: toolCallId, response: { result: parts.map(toPart) } } };
    }
    case "image": {
      const { source, mediaType } = kind.value;
      const mimeType = mediaType === "" ? "image/png" : mediaType;
      if (source.case === "url") return { fileData: { fileUri: source.value, mimeType } };
      return { inlineData: { mimeType, data: Buffer.from(source.value!).toString("base64") } };
    }
    default:
      throw new RangeError(`scenarios have no ${kind.case} parts`);
  }
}

/** The vendor's statuses and their names. */
const LOOKS: Readonly<Record<Exclude<FailureCode, "cancelled">, string>> = {
  invalid_request: "400 INVALID_ARGUMENT",
  request_too_large: "413 INVALID_ARGUMENT",
  response_too_large: "400 INVALID_ARGUMENT",
  unauthenticated: "401 UNAUTHENTICATED",
  permission_denied: "403 PERMISSION_DENIED",
  stopped: "403 PERMISSION_DENIED",
  model_not_found: "404 NOT_FOUND",
  not_found: "404 NOT_FOUND",
  conflict: "409 ABORTED",
  rate_limited: "429 RESOURCE_EXHAUSTED",
  budget_spent: "429 RESOURCE_EXHAUSTED",
  overloaded: "503 UNAVAILABLE",
  upstream_rejected: "400 INVALID_ARGUMENT",
  upstream_rate_limited: "429 RESOURCE_EXHAUSTED",
  upstream_unavailable: "503 UNAVAILABLE",
  upstream_timeout: "503 UNAVAILABLE",
  upstream_protocol: "500 INTERNAL",
  upstream_refused_us: "500 INTERNAL",
  deadline_exceeded: "504 DEADLINE_EXCEEDED",
  internal: "500 INTERNAL",
};

/** The error itself has the status too, also in the middle of a stream; its details have the reason. */
export function lookOfGemini({ failure, detail, after }: ExpectedFailure): FailureLook {
  if (failure === "cancelled") throw new RangeError("no caller sees a cancelled call");
  const row = LOOKS[failure];
  const reason = ErrorReason[reasonOf({ code: failure, detail })];
  const { code } = COMMON_LOOKS[failure];
  return {
    status: `${after === undefined ? row.slice(0, 3) : "200"}, ${row}, ${reason}`,
    code: detail ?? (code === "absent" ? null : code),
  };
}

interface PartJson {
  readonly text?: string;
  readonly functionCall?: { readonly name: string; readonly args: object };
  readonly inlineData?: { readonly mimeType: string; readonly data: string };
}

interface CandidateJson {
  readonly index: number;
  readonly content: { readonly role: string; readonly parts: readonly PartJson[] };
  readonly finishReason?: string;
}

/** Checked fields of a response and of a piece of a stream. */
interface ResponseJson {
  readonly candidates: readonly CandidateJson[];
  readonly usageMetadata?: { readonly promptTokenCount: number; readonly candidatesTokenCount: number };
  readonly modelVersion: string;
  readonly responseId: string;
  readonly parley?: ReportJson;
}

/** The checked fields of all details of an error. */
interface DetailJson {
  readonly "@type": string;
  readonly reason?: string;
  readonly domain?: string;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly fieldViolations?: readonly { readonly field: string }[];
  readonly retryDelay?: string;
  readonly attempts?: JsonValue;
}

/** An error of the format. */
export interface ErrorJson {
  readonly error: {
    readonly code: number;
    readonly message: string;
    readonly status: string;
    readonly details: readonly DetailJson[];
  };
}

function read(response: SeenResponse): Said {
  const pieces = isStreamed(response) ? readPieces(response.body) : [readPiece(response.body)];
  const answers = pieces.filter((piece) => "candidates" in piece);
  const [error, ...more] = pieces.filter((piece) => "error" in piece);
  expect(more).toEqual([]);
  // Clients take the last piece for the end.
  if (error !== undefined) expect(pieces.at(-1)).toBe(error);
  const candidates = answers.flatMap((answer) => answer.candidates);
  for (const { content } of candidates) {
    expect(content.role).toBe("model");
    expect(content.parts).not.toEqual([]);
  }
  const parts = candidates.flatMap(({ content }) => content.parts);
  const calls = parts.flatMap(({ functionCall: call }) =>
    call === undefined ? [] : callInShort(call.name, JSON.stringify(call.args)),
  );
  const { usageMetadata: usage, parley } = answers.at(-1) ?? {};
  const finishes = candidates.flatMap(({ finishReason }) => finishReason ?? []);
  return {
    model: answers[0]?.modelVersion,
    text: parts.map(({ text = "" }) => text).join(""),
    calls,
    pictures: parts.flatMap(({ inlineData }) => inlineData?.data ?? []),
    finishReasons: finishes.map((reason) => finishOf(reason, calls)),
    usage: usage && `${usage.promptTokenCount}+${usage.candidatesTokenCount}`,
    report: parley && readReport(parley),
    complete: finishes.length > 0 && error === undefined,
    failure: error && readGeminiError(error, response),
  };
}

function readPiece(json: string): ResponseJson | ErrorJson {
  return JSON.parse(json) as ResponseJson | ErrorJson;
}

/** Reads a stream: events, and for an error bare JSON at the end, as the vendor's clients expect it. */
function readPieces(body: string): (ResponseJson | ErrorJson)[] {
  return body.split("\n\n").flatMap((text) => {
    if (text === "" || text.startsWith(":")) return [];
    const isEvent = text.startsWith("data: ");
    const piece = readPiece(isEvent ? text.slice("data: ".length) : text);
    expect("error" in piece).toBe(!isEvent);
    return [piece];
  });
}

const FINISHES: Readonly<Record<string, string>> = { STOP: "stop", MAX_TOKENS: "length", SAFETY: "content_filter" };

/** The format has no finish reason for calls. */
function finishOf(reason: string, calls: readonly string[]): string {
  return reason === "STOP" && calls.length > 0 ? "tool_calls" : (FINISHES[reason] ?? reason);
}

/** Reads an error of the format, and checks its details. */
export function readGeminiError({ error }: ErrorJson, response: SeenResponse): Said["failure"] {
  const detail = (type: string): DetailJson | undefined =>
    error.details.find((each) => each["@type"] === `type.googleapis.com/${type}`);
  const info = detail("google.rpc.ErrorInfo");
  expect(info).toMatchObject({ domain: "parley", metadata: { request_id: response.headers["x-request-id"] } });
  const advice = readAdvice(response);
  const delay = detail("google.rpc.RetryInfo")?.retryDelay;
  const tried = detail("parley.v1.AttemptList")?.attempts;
  // Clients read either.
  if (!isStreamed(response)) expect(delay && Math.ceil(Number.parseFloat(delay))).toBe(advice.retryAfterS);
  return {
    status: `${response.status}, ${error.code} ${error.status}, ${info?.reason}`,
    code: info?.metadata?.["error_code"] ?? null,
    message: error.message,
    param: detail("google.rpc.BadRequest")?.fieldViolations?.[0]?.field ?? null,
    attempts: fromJson(AttemptListSchema, { attempts: tried ?? [] }).attempts.map(readAttempt),
    ...advice,
  };
}
