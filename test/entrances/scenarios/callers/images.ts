import { type CompletionRequest } from "../../../../gen/parley/v1/completion_pb.js";
import { Modality } from "../../../../gen/parley/v1/modality_pb.js";
import type { Mode } from "../../../../src/core/router.ts";
import { says } from "../../../support/scripted-upstream.ts";
import { PICTURE } from "../pictures.ts";
import type { Scenario } from "../scenario.ts";
import {
  type CompletionCaller,
  given,
  jsonScenarios,
  readReport,
  type ReportJson,
  type Said,
  type SeenResponse,
} from "./caller.ts";
import { type ErrorJson, lookOfOpenAi, readOpenAiError } from "./chat.ts";

const drawn = { painter: [says("Here it is:", { picture: PICTURE })] };
const ofPainter = { model: "painter", modalities: [Modality.TEXT, Modality.IMAGE] };

/** In words that only requests for pictures have. */
const OWN: readonly Scenario[] = [
  ...jsonScenarios(
    [
      ["n", { n: 1.5 }],
      ["size", { size: 7 }],
      ["prompt", { prompt: ["a dot"] }],
      ["response_format", { response_format: "file" }],
    ],
    { n: null, size: null, user: null, fallback_models: null },
    drawn,
  ).map((scenario): Scenario =>
    "answer" in scenario.expected
      ? { ...scenario, mode: "whole", ask: ofPainter, expected: { answer: { model: "painter", pictures: [PICTURE] } } }
      : scenario,
  ),
  {
    name: "lists what a model of pictures does not have",
    at: "http",
    ask: ofPainter,
    fields: { quality: "high", size: "1536x1024" },
    upstream: drawn,
    models: { painter: { capabilities: { image_options: false } } },
    expected: { answer: { model: "painter", pictures: [PICTURE], omitted: ["quality", "size"] } },
  },
];

/** Callers of OpenAI's pictures: a conversation of one text, whose answer has pictures and no text. */
export const IMAGES: CompletionCaller = {
  service: "completions",
  format: "images",
  path: () => "/v1/images/generations",
  unknownPath: "/v1/images/drawings",
  write: toImagesJson,
  nameOf: (field) => field,
  read: readImagesReply,
  look: lookOfOpenAi,
  hasParam: true,
  own: OWN,
  plays: ({ ask: { modalities = [] } = {} }) =>
    modalities.includes(Modality.TEXT) && modalities.includes(Modality.IMAGE),
  hasText: false,
};

function toImagesJson(request: CompletionRequest, mode: Mode): Record<string, unknown> {
  const [first] = request.messages[0]!.parts;
  return {
    model: request.model,
    prompt: first?.kind.value,
    ...given("fallback_models", request.fallbackModels),
    n: request.choiceCount,
    parley: request.strict ? { strict: true } : undefined,
    ...(mode === "stream" && { stream: true }),
  };
}

/** A list of pictures, the event of one, and an error. */
interface ReplyJson {
  readonly data?: readonly { readonly b64_json: string }[];
  readonly b64_json?: string;
  readonly usage?: { readonly input_tokens: number; readonly output_tokens: number };
  readonly parley?: ReportJson;
  readonly error?: ErrorJson;
}

/** The format names neither the model nor a finish reason: a header has the model, and what is complete has stopped. */
function readImagesReply(response: SeenResponse): Said {
  const { body, headers } = response;
  const events = body.startsWith("{") ? [body] : [...body.matchAll(/^data: (.*)$/gm)].map(([, data]) => data!);
  const parts = events.map((event) => JSON.parse(event) as ReplyJson);
  const { usage, parley: report, error } = Object.assign({}, ...parts) as ReplyJson;
  const served = headers["parley-served-model"];
  return {
    model: error === undefined ? served?.toString() : undefined,
    text: "",
    calls: [],
    pictures: parts.flatMap(({ data, b64_json: one }) => data?.map(({ b64_json: each }) => each) ?? one ?? []),
    finishReasons: report === undefined ? [] : ["stop"],
    usage: usage && `${usage.input_tokens}+${usage.output_tokens}`,
    report: report && readReport(report),
    complete: report !== undefined,
    failure: error && readOpenAiError(error, response),
  };
}
