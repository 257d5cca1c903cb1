import { type EmbeddingRequest, EmbeddingTask } from "../../../../gen/parley/v1/embedding_pb.js";
import { says } from "../../../support/scripted-upstream.ts";
import { textOfVector } from "../../../support/upstream-embeddings.ts";
import type { Scenario } from "../scenario.ts";
import {
  type EmbeddingCaller,
  jsonScenarios,
  readReport,
  type ReportJson,
  renamer,
  type Said,
  type SeenResponse,
  textsOf,
  Unsayable,
} from "./caller.ts";
import { type ErrorJson, lookOfOpenAi, readOpenAiError } from "./chat.ts";

const hello = { alpha: [says("Hello.")] };

/** In words that only OpenAI's embeddings have. */
const OWN: readonly Scenario[] = [
  ...jsonScenarios(
    [
      ["input", { input: 7 }],
      ["input", { input: undefined }],
      ["input", { input: [1, 2, 3] }],
      ["input[1]", { input: ["a", {}] }],
      ["dimensions", { dimensions: 1.5 }],
      ["dimensions", { dimensions: 3_000_000_000 }],
      ["encoding_format", { encoding_format: "hex" }],
      ["user", { user: 7 }],
      ["model", { model: undefined }],
    ],
    { dimensions: null, user: null, encoding_format: null, parley: null },
    hello,
  ),
  {
    name: "takes one text without a list, and returns base64 when asked",
    at: "http",
    fields: { input: "Hello?", encoding_format: "base64" },
    upstream: hello,
    expected: { answer: {} },
  },
];

/** Callers of OpenAI's embeddings. */
export const EMBEDDINGS: EmbeddingCaller = {
  service: "embeddings",
  format: "embeddings",
  path: () => "/v1/embeddings",
  unknownPath: "/v1/embeddings/complete",
  write,
  nameOf: renamer([
    [/^inputs\b/, "input"],
    [/^end_user_id$/, "user"],
  ]),
  read,
  look: lookOfOpenAi,
  hasParam: true,
  own: OWN,
};

function write({ model, inputs, dimensions, task, endUserId, strict }: EmbeddingRequest): Record<string, unknown> {
  if (task !== EmbeddingTask.UNSPECIFIED) throw new Unsayable("task");
  return { model, input: textsOf(inputs), dimensions, user: endUserId, ...(strict && { parley: { strict } }) };
}

/** A list of vectors, or an error. */
interface ReplyJson {
  readonly model?: string;
  readonly data?: readonly { readonly index: number; readonly embedding: readonly number[] | string }[];
  readonly usage?: { readonly prompt_tokens: number; readonly total_tokens: number };
  readonly parley?: ReportJson;
  readonly error?: ErrorJson;
}

function read(response: SeenResponse): Said {
  const { model, data = [], usage, parley, error } = JSON.parse(response.body) as ReplyJson;
  const ordered = data.toSorted((a, b) => a.index - b.index);
  return {
    model,
    text: ordered.map(({ embedding }) => textOfVector(toValues(embedding))).join(""),
    calls: [],
    pictures: [],
    finishReasons: [],
    usage: usage && `${usage.prompt_tokens}+${usage.total_tokens - usage.prompt_tokens}`,
    report: parley && readReport(parley),
    complete: error === undefined,
    failure: error && readOpenAiError(error, response),
  };
}

function toValues(embedding: readonly number[] | string): readonly number[] {
  if (typeof embedding !== "string") return embedding;
  const { buffer, byteOffset, byteLength } = Buffer.from(embedding, "base64");
  return [...new Float32Array(buffer.slice(byteOffset, byteOffset + byteLength))];
}
