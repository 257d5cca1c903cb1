import type {
  Format,
  FormatInput,
  FormatRoute,
  Operation,
  ReadCompletion,
  ReadCount,
  RequestHeaders,
} from "../format.ts";
import { readBatchEmbedContents, readEmbedContent } from "./embeddings.ts";
import { statusOf, toErrorBody } from "./error.ts";
import { toModelObject, toModelPage } from "./models.ts";
import { readCountRequest, readGeminiRequest } from "./request.ts";
import { writeGeminiResponse } from "./response.ts";
import { GeminiStream } from "./stream.ts";

/** Operations by the method that follows a model's path. */
const METHODS: Readonly<Record<string, (model: string) => Operation>> = {
  generateContent: (model) => ({ name: "completion", read: (input) => readCompletion(input, model, "whole") }),
  streamGenerateContent: (model) => ({ name: "completion", read: (input) => readCompletion(input, model, "stream") }),
  countTokens: (model) => ({ name: "count", read: (input) => readCount(input, model) }),
  embedContent: (model) => ({ name: "embedding", read: (input) => readEmbedContent(input, model) }),
  batchEmbedContents: (model) => ({ name: "embedding", read: (input) => readBatchEmbedContents(input, model) }),
};

/** Base paths: clients of the vendor use either version, and some leave it out. */
const BASES = ["/v1beta", "/v1", ""];

/** Paths of this format alone. */
const OWN_PATH = /^\/v1beta(?:\/|$)/;
const METHOD_PATH = /^(?:\/v1)?\/models\/.+:([A-Za-z]+)$/;

function isOwn(path: string): boolean {
  const method = METHOD_PATH.exec(path)?.[1];
  return OWN_PATH.test(path) || (method !== undefined && Object.hasOwn(METHODS, method));
}

/** Paths that other formats have too. The vendor's clients call them for operations that Parley does not offer. */
const SHARED_PATH = /^\/v1\/(?:models|files|cachedContents|tunedModels|batches|operations|interactions)(?:[/:]|$)/;

/** Whether a request is from a client of the vendor. */
function isOfVendor(headers: RequestHeaders): boolean {
  return headers["x-goog-api-key"] !== undefined || headers["x-goog-api-client"] !== undefined;
}

function modelRoutes(base: string, accepts?: FormatRoute["accepts"]): FormatRoute[] {
  const shared = accepts === undefined ? {} : { accepts };
  return [
    { method: "GET", path: `${base}/models`, ...shared, operation: () => ({ name: "models", write: toModelPage }) },
    {
      method: "GET",
      path: `${base}/models/{id}`,
      ...shared,
      operation: (id) => ({ name: "model", id, write: toModelObject }),
    },
  ];
}

/** Gemini's `generateContent`. */
export const gemini: Format = {
  name: "gemini",
  routes: [
    ...BASES.flatMap((base) =>
      Object.entries(METHODS).map(([method, operation]): FormatRoute => {
        return { method: "POST", path: `${base}/models/{model}:${method}`, operation };
      }),
    ),
    ...modelRoutes("/v1beta"),
    ...modelRoutes("/v1", isOfVendor),
  ],
  owns: (path, headers) => isOwn(path) || (SHARED_PATH.test(path) && isOfVendor(headers)),
  writeError: (failure, requestId) => ({ status: statusOf(failure), body: toErrorBody(failure, requestId) }),
};

function readCompletion(
  { json, query, requestId }: FormatInput,
  model: string,
  mode: "whole" | "stream",
): ReadCompletion {
  const read = readGeminiRequest(json, model);
  const form = (query.get("alt") ?? query.get("$alt")) === "sse" ? "events" : "array";
  return {
    ...read,
    stream: mode === "stream",
    writeWhole: (completion) => writeGeminiResponse(completion, read),
    writeStream: () => new GeminiStream({ ...read, form, requestId }),
  };
}

function readCount({ json }: FormatInput, model: string): ReadCount {
  return { ...readCountRequest(json, model), write: (totalTokens) => ({ totalTokens }) };
}
