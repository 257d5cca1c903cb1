import { type EmbeddingRequest, EmbeddingTask } from "../../../../gen/parley/v1/embedding_pb.js";
import { says } from "../../../support/scripted-upstream.ts";
import { textOfVector } from "../../../support/upstream-embeddings.ts";
import {
  type EmbeddingCaller,
  jsonScenarios,
  readReport,
  refuseUnsayable,
  renamer,
  type ReportJson,
  type Said,
  type SeenResponse,
  textsOf,
  Unsayable,
} from "./caller.ts";
import { type ErrorJson, lookOfGemini, readGeminiError } from "./gemini.ts";

const hello = { alpha: [says("Hello.")] };
const asked = { content: { parts: [{ text: "Hello?" }] } };

/** Callers of Gemini's `embedContent`. */
export const EMBED_CONTENT: EmbeddingCaller = {
  service: "embeddings",
  format: "embedContent",
  path: (model) => `/v1beta/models/${model}:embedContent`,
  unknownPath: "/v1beta/models/alpha:complete",
  write(request) {
    refuseModelless(request);
    const texts = textsOf(request.inputs);
    if (texts.length !== 1) throw new Unsayable("another number of texts than one");
    return { ...toOne(texts[0]!, request), ...toParley(request) };
  },
  nameOf: renamer([
    [/^inputs(\[\d+\])?/, "content"],
    [/^dimensions$/, "outputDimensionality"],
    [/^task$/, "taskType"],
  ]),
  read,
  look: lookOfGemini,
  hasParam: true,
  own: jsonScenarios(
    [
      ["content", { content: "Hello?" }],
      ["content", { content: undefined }],
      ["content.parts[0].text", { content: { parts: [{ text: 7 }] } }],
      ["content.parts[0]", { content: { parts: [{ inlineData: { mimeType: "image/png", data: "" } }] } }],
      ["taskType", { taskType: "SMELL" }],
      ["outputDimensionality", { outputDimensionality: 1.5 }],
      ["outputDimensionality", { outputDimensionality: 3_000_000_000 }],
    ],
    { taskType: null, outputDimensionality: null, parley: null },
    hello,
  ),
};

/** Callers of Gemini's `batchEmbedContents`. */
export const BATCH_EMBED_CONTENTS: EmbeddingCaller = {
  service: "embeddings",
  format: "batchEmbedContents",
  path: (model) => `/v1beta/models/${model}:batchEmbedContents`,
  unknownPath: "/v1beta/models/alpha:complete",
  write(request) {
    refuseModelless(request);
    return { requests: textsOf(request.inputs).map((text) => toOne(text, request)), ...toParley(request) };
  },
  nameOf: renamer([
    [/^inputs\[(\d+)\]/, "requests[$1].content"],
    [/^inputs$/, "requests"],
    [/^dimensions$/, "requests[0].outputDimensionality"],
    [/^task$/, "requests[0].taskType"],
  ]),
  read,
  look: lookOfGemini,
  hasParam: true,
  own: jsonScenarios(
    [
      ["requests", { requests: "Hello?" }],
      ["requests", { requests: undefined }],
      ["requests[0].content", { requests: [{}] }],
      ["requests[1].content.parts[0].text", { requests: [asked, { content: { parts: [{ text: 7 }] } }] }],
      ["requests[1].taskType", { requests: [asked, { ...asked, taskType: "CLUSTERING" }] }],
      ["requests[1].outputDimensionality", { requests: [asked, { ...asked, outputDimensionality: 8 }] }],
    ],
    { parley: null },
    hello,
  ),
};

function refuseModelless(request: EmbeddingRequest): void {
  if (request.model === "") throw new Unsayable("no model");
  refuseUnsayable(request, ["endUserId"]);
}

function toOne(text: string, { dimensions, task }: EmbeddingRequest): object {
  return {
    content: { parts: [{ text }] },
    outputDimensionality: dimensions,
    ...(task === EmbeddingTask.QUERY && { taskType: "RETRIEVAL_QUERY" }),
  };
}

const toParley = ({ strict }: EmbeddingRequest): object => (strict ? { parley: { strict } } : {});

/** One vector, several, or an error. */
interface ReplyJson extends Partial<ErrorJson> {
  readonly embedding?: { readonly values: readonly number[] };
  readonly embeddings?: readonly { readonly values: readonly number[] }[];
  readonly usageMetadata?: { readonly promptTokenCount: number };
  readonly parley?: ReportJson;
}

/** The format does not name the model: a header does. */
function read(response: SeenResponse): Said {
  const { embedding, embeddings, usageMetadata: usage, parley, error } = JSON.parse(response.body) as ReplyJson;
  const vectors = embeddings ?? (embedding === undefined ? [] : [embedding]);
  return {
    model: error === undefined ? response.headers["parley-served-model"]?.toString() : undefined,
    text: vectors.map(({ values }) => textOfVector(values)).join(""),
    calls: [],
    pictures: [],
    finishReasons: [],
    usage: usage && `${usage.promptTokenCount}+0`,
    report: parley && readReport(parley),
    complete: error === undefined,
    failure: error && readGeminiError({ error }, response),
  };
}
