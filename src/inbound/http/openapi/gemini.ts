import { z } from "zod";
import { content, part } from "../../../formats/gemini/content-schema.ts";
import { batchEmbedContentsRequest, embedContentRequest } from "../../../formats/gemini/embeddings.ts";
import { countTokensRequest, generateContentRequest } from "../../../formats/gemini/schema.ts";
import { parley } from "./answer-schemas.ts";
import { jsonBody, type JsonSchema, refTo, toJsonSchemas } from "./components.ts";
import { EVERYWHERE, headerParameters, headerRefs, LABEL_PARAMETERS, ROUTING } from "./errors.ts";

/* The Gemini format in the OpenAPI document: its requests by the schemas that read them, its answers in outline. */

const text = (description: string) => z.string().describe(description);
const count = (description: string) => z.int().min(0).describe(description);

const usageMetadata = z
  .looseObject({
    promptTokenCount: count("Tokens of the request, cached ones included."),
    candidatesTokenCount: count("Tokens of the answer without thoughts."),
    thoughtsTokenCount: count("Tokens of thoughts.").optional(),
    cachedContentTokenCount: count("Tokens read from the provider’s cache.").optional(),
    totalTokenCount: count("All together."),
  })
  .describe("Usage by the provider.");

const candidate = z
  .looseObject({
    index: count("Position among the candidates."),
    content: content.describe("The answer, or a piece of it: always with a part."),
    finishReason: text("Why it ended, such as `STOP` or `MAX_TOKENS`; in a stream on the last piece.").optional(),
  })
  .describe("One alternative answer.");

const generateContentResponse = z
  .looseObject({
    candidates: z.array(candidate).describe("The answers; exactly one unless the request asked for more."),
    usageMetadata: usageMetadata.optional(),
    modelVersion: text("The model that answered; after a fallback not the one that was asked for."),
    responseId: text("The completion’s ID."),
    parley: parley.optional(),
  })
  .describe("An answer, or a piece of a streamed one.");

const vector = z.looseObject({ values: z.array(z.number()).describe("Its components.") }).describe("A vector.");
const embedded = { usageMetadata: z.looseObject({ promptTokenCount: z.int() }).optional(), parley: parley.optional() };
const embedContentResponse = z.looseObject({ embedding: vector, ...embedded }).describe("The vector of a text.");
const batchEmbedContentsResponse = z
  .looseObject({ embeddings: z.array(vector).describe("In the order of the requests."), ...embedded })
  .describe("The vectors of texts.");

const model = z
  .looseObject({
    name: text("`models/` and the model’s ID."),
    displayName: text("The model’s ID."),
    description: text("Its description, in one line."),
    inputTokenLimit: count("The most tokens that request and answer may have together.").optional(),
    outputTokenLimit: count("The upper bound of `maxOutputTokens`.").optional(),
    supportedGenerationMethods: z.array(z.string()).describe("Methods that it has."),
  })
  .describe("A model.");

const modelPage = z
  .looseObject({
    models: z.array(model).describe("In the order of the registry."),
    nextPageToken: text("Asks for the next page; absent on the last one.").optional(),
  })
  .describe("A page of the models that the key may use.");

const error = z
  .looseObject({
    error: z.looseObject({
      code: z.int().describe("The HTTP status."),
      message: text("What is wrong, for people."),
      status: text("The name of the `google.rpc.Code`, such as `INVALID_ARGUMENT`."),
      details: z
        .array(z.looseObject({ "@type": z.string() }))
        .describe(
          "`google.rpc.ErrorInfo`, and where they apply `BadRequest`, `RetryInfo` and `parley.v1.AttemptList`.",
        ),
    }),
  })
  .describe("A `google.rpc.Status`.");

/** Schemas by name. */
export function geminiSchemas(): Record<string, JsonSchema> {
  return toJsonSchemas({
    GenerateContentRequest: generateContentRequest,
    CountTokensRequest: countTokensRequest,
    GeminiContent: content,
    GeminiPart: part,
    GenerateContentResponse: generateContentResponse,
    EmbedContentRequest: embedContentRequest,
    BatchEmbedContentsRequest: batchEmbedContentsRequest,
    EmbedContentResponse: embedContentResponse,
    BatchEmbedContentsResponse: batchEmbedContentsResponse,
    GeminiModel: model,
    GeminiModelPage: modelPage,
    GeminiError: error,
  });
}

const EXAMPLE = { contents: [{ role: "user", parts: [{ text: "Hello!" }] }] };

const EMBED_EXAMPLE = { content: { parts: [{ text: "the cat sat" }] }, outputDimensionality: 256 };

const ALSO =
  "Also under `/v1`, and without a version. The key may come as `x-goog-api-key`; fields may be written in snake case.";

/** Paths by the vendor's default version. */
export function geminiPaths(): Record<string, object> {
  return {
    "/v1beta/models/{model}:generateContent": {
      post: post("generateContent", {
        summary: "Generate an answer",
        description: ALSO,
        answer: json("GenerateContentResponse"),
      }),
    },
    "/v1beta/models/{model}:streamGenerateContent": {
      post: post("streamGenerateContent", {
        summary: "Generate an answer as a stream",
        description: `With \`alt=sse\` server-sent events, otherwise one JSON array that grows. Every piece has a part; the last one has the finish reason, the usage and \`parley\`. There is no other end mark. A failure after the first content is the last thing in the stream: an object with \`error\`, which is no event. ${ALSO}`,
        parameters: [{ name: "alt", in: "query", description: "The form of the stream.", schema: { enum: ["sse"] } }],
        answer: {
          "text/event-stream": { schema: refTo("GenerateContentResponse") },
          "application/json": { schema: { type: "array", items: refTo("GenerateContentResponse") } },
        },
      }),
    },
    "/v1beta/models/{model}:countTokens": {
      post: post("countTokens", {
        summary: "Count the tokens of a request",
        description: ALSO,
        request: "CountTokensRequest",
        answer: {
          "application/json": { schema: { type: "object", properties: { totalTokens: { type: "integer" } } } },
        },
      }),
    },
    "/v1beta/models/{model}:embedContent": {
      post: post("embedContent", {
        summary: "Embed a text",
        description: ALSO,
        request: "EmbedContentRequest",
        example: EMBED_EXAMPLE,
        answer: json("EmbedContentResponse"),
      }),
    },
    "/v1beta/models/{model}:batchEmbedContents": {
      post: post("batchEmbedContents", {
        summary: "Embed texts",
        description: ALSO,
        request: "BatchEmbedContentsRequest",
        example: { requests: [EMBED_EXAMPLE] },
        answer: json("BatchEmbedContentsResponse"),
      }),
    },
    "/v1beta/models": {
      get: {
        ...named("models", "List the models that the key may use"),
        description: "Under `/v1` this is for requests with `x-goog-api-key` or `x-goog-api-client`.",
        parameters: [
          { name: "pageSize", in: "query", description: "At most 1,000.", schema: { type: "integer", default: 50 } },
          { name: "pageToken", in: "query", description: "Of the previous page.", schema: { type: "string" } },
          ...headerParameters(["x-request-id"]),
        ],
        responses: responses(json("GeminiModelPage"), EVERYWHERE),
      },
    },
    "/v1beta/models/{id}": {
      get: {
        ...named("model", "Get one model"),
        parameters: [
          { name: "id", in: "path", required: true, description: "The model’s ID.", schema: { type: "string" } },
          ...headerParameters(["x-request-id"]),
        ],
        responses: responses(json("GeminiModel"), EVERYWHERE),
      },
    },
  };
}

function named(operation: string, summary: string) {
  return { operationId: `gemini.${operation}`, summary, tags: ["Gemini format"] };
}

interface Posted {
  readonly summary: string;
  readonly description: string;
  readonly parameters?: readonly object[];
  /** Default: that of an answer. */
  readonly request?: string;
  readonly example?: object;
  readonly answer: object;
}

function post(
  operation: string,
  { summary, description, parameters = [], request = "GenerateContentRequest", example = EXAMPLE, answer }: Posted,
): object {
  return {
    ...named(operation, summary),
    description,
    parameters: [
      { name: "model", in: "path", required: true, description: "The model’s ID.", schema: { type: "string" } },
      ...parameters,
      ...headerParameters(["x-request-id", "x-request-timeout-ms", "x-server-timeout", ...LABEL_PARAMETERS]),
    ],
    requestBody: jsonBody(request, example),
    responses: responses(answer, [...EVERYWHERE, ...ROUTING]),
  };
}

function json(schema: string): object {
  return { "application/json": { schema: refTo(schema) } };
}

function responses(answer: object, headers: readonly string[]): object {
  return {
    "200": { description: "The answer.", headers: headerRefs(headers), content: answer },
    default: {
      description: "A failure; its `details` hold `google.rpc.ErrorInfo` with the failure’s code as `reason`.",
      content: json("GeminiError"),
    },
  };
}
