import type { DescMethod } from "@bufbuild/protobuf";
import { CONNECT_SERVICES } from "../routes.ts";
import { jsonBody, openaiSchemas, refTo } from "./components.ts";
import {
  ANSWER_HEADERS,
  errorResponses,
  errorSchema,
  EVERYWHERE,
  headerParameters,
  headerRefs,
  LABEL_PARAMETERS,
  ROUTE_FAILURES,
  ROUTING,
} from "./errors.ts";
import { geminiPaths, geminiSchemas } from "./gemini.ts";
import { guide } from "./guide.ts";
import { messagesPaths, messagesSchemas } from "./messages.ts";
import { described, type ProtoComments, protoSchemas } from "./proto-schemas.ts";

/** Headers of requests with a model. */
const ASKING = ["x-request-id", "x-request-timeout-ms", "x-stainless-timeout", ...LABEL_PARAMETERS];

/** Inputs of the document. */
export interface DocumentFacts {
  /** Comments of the contract. Default: none. */
  readonly comments?: ProtoComments | undefined;
  /** Port of gRPC. Default: the configuration's default. */
  readonly grpcPort?: number | undefined;
}

const DEFAULT_GRPC_PORT = 50_051;

/**
 * The HTTP API as an OpenAPI 3.1 document, from the schemas of requests, the failure table, and the contract with its comments, if
 * known.
 */
export function openApiDocument({ comments = new Map(), grpcPort = DEFAULT_GRPC_PORT }: DocumentFacts = {}): object {
  return {
    openapi: "3.1.1",
    info: {
      title: "Parley",
      // Version of the API: the release is not disclosed without a key.
      version: "v1",
      summary: "A completion gateway.",
      description: guide(grpcPort),
    },
    servers: [{ url: "/" }],
    security: [{ key: [] }],
    tags: [
      { name: "OpenAI format", description: "Routes in the format of OpenAI’s API." },
      { name: "Gemini format", description: "Routes in the format of Google’s Gemini API." },
      { name: "Messages format", description: "Routes in the format of the Messages API." },
      {
        name: "Connect",
        description:
          "The contract `parley.v1` over the Connect protocol, as JSON. The `.proto` files are under `/proto/`; gRPC may have its own port.",
      },
      { name: "Health", description: "For load balancers." },
    ],
    paths: {
      "/v1/chat/completions": { post: chatOperation() },
      "/v1/responses": { post: responsesOperation() },
      "/v1/responses/input_tokens": {
        post: {
          ...ofOpenai("countResponseTokens", "Count the tokens of a response’s request"),
          description: "Takes the request of a response, and runs nothing.",
          parameters: headerParameters(ASKING),
          requestBody: responsesBody(),
          responses: {
            "200": whole("The number of tokens.", "ResponseInputTokens", EVERYWHERE),
            ...errorResponses(ROUTE_FAILURES.chat),
          },
        },
      },
      "/v1/responses/{id}": {
        get: {
          ...ofOpenai("getResponse", "Get a stored response"),
          description: `The response object as it was answered, for keys of the same account. ${ONLY_STORED}`,
          parameters: [STORED_ID, ...headerParameters(["x-request-id"])],
          responses: {
            "200": whole("The response.", "Response", EVERYWHERE),
            ...errorResponses(ROUTE_FAILURES.stored),
          },
        },
        delete: {
          ...ofOpenai("deleteResponse", "Delete a stored response"),
          description: `Responses that continue it keep their conversation. ${ONLY_STORED}`,
          parameters: [STORED_ID, ...headerParameters(["x-request-id"])],
          responses: {
            "200": whole("It is deleted.", "ResponseDeleted", EVERYWHERE),
            ...errorResponses(ROUTE_FAILURES.stored),
          },
        },
      },
      "/v1/responses/{id}/input_items": {
        get: {
          ...ofOpenai("listResponseInputItems", "List the conversation before a stored response"),
          description: `The items of the whole conversation before the answer, those of earlier responses included. ${ONLY_STORED}`,
          parameters: [
            STORED_ID,
            {
              name: "limit",
              in: "query",
              description: "The most items to return.",
              schema: { type: "integer", minimum: 1, maximum: 100, default: 20 },
            },
            {
              name: "order",
              in: "query",
              description: "The order of the items.",
              schema: { type: "string", enum: ["asc", "desc"], default: "desc" },
            },
            {
              name: "after",
              in: "query",
              description: "The ID of the item before the first one to return.",
              schema: { type: "string" },
            },
            ...headerParameters(["x-request-id"]),
          ],
          responses: {
            "200": whole("The items.", "ResponseItemList", EVERYWHERE),
            ...errorResponses(ROUTE_FAILURES.stored),
          },
        },
      },
      "/v1/embeddings": {
        post: {
          ...ofOpenai("createEmbedding", "Create embeddings"),
          description:
            "Makes one vector for each text, in their order. The model is one with the output modality `embedding`; there are no fallback models, because vectors of different models cannot be compared.",
          parameters: headerParameters(ASKING),
          requestBody: jsonBody("EmbeddingRequest", { model: "gamma-embedding-3-small", input: ["Hello!"] }),
          responses: {
            "200": whole("The vectors.", "EmbeddingList", [...EVERYWHERE, ...ROUTING]),
            ...errorResponses(ROUTE_FAILURES.embeddings),
          },
        },
      },
      "/v1/images/generations": { post: imagesOperation() },
      "/v1/images/edits": { post: imageEditsOperation() },
      "/v1/route": { post: routeOperation() },
      "/v1/models": {
        get: {
          ...ofOpenai("listModels", "List the models that the key may use"),
          parameters: headerParameters(["x-request-id"]),
          responses: { "200": whole("The models.", "ModelList", EVERYWHERE), ...errorResponses(ROUTE_FAILURES.models) },
        },
      },
      "/v1/models/{id}": {
        get: {
          ...ofOpenai("getModel", "Get one model"),
          parameters: [
            { name: "id", in: "path", required: true, description: "The model’s ID.", schema: { type: "string" } },
            ...headerParameters(["x-request-id"]),
          ],
          responses: { "200": whole("The model.", "Model", EVERYWHERE), ...errorResponses(ROUTE_FAILURES.model) },
        },
      },
      ...geminiPaths(),
      ...messagesPaths(),
      "/healthz": { get: healthOperation("getHealth", "Whether the process is alive", { "200": "ok" }) },
      "/readyz": {
        get: healthOperation("getReadiness", "Whether it takes new work", { "200": "ready", "503": "draining" }),
      },
      ...connectPaths(comments),
    },
    components: {
      securitySchemes: {
        key: { type: "http", scheme: "bearer", description: "An API key, `sk_parley_…`, as made in the dashboard." },
      },
      headers: Object.fromEntries(
        Object.entries(ANSWER_HEADERS).map(([name, { description, schema }]) => [name, { description, schema }]),
      ),
      schemas: {
        ...openaiSchemas(),
        ...geminiSchemas(),
        ...messagesSchemas(),
        Error: errorSchema(),
        ConnectError: connectErrorSchema(),
        ...protoSchemas(
          methods().flatMap(({ input, output }) => [input, output]),
          comments,
        ),
      },
    },
  };
}

const EXAMPLE = {
  model: "alpha-haiku-4.5",
  messages: [{ role: "user", content: "Hello!" }],
  fallback_models: ["beta-3-flash"],
  max_tokens: 1000,
  temperature: 0.7,
};

function ofOpenai(operationId: string, summary: string) {
  return { operationId, summary, tags: ["OpenAI format"] };
}

function chatOperation(): object {
  return {
    ...ofOpenai("createChatCompletion", "Create a chat completion"),
    description:
      'Runs one completion. With `stream` the answer comes as server-sent events: each is a line `data: ` with a chunk as JSON and an empty line. First comes a delta with the role, then the pieces; the chunk with the finish reason has an empty delta; with `stream_options.include_usage` a chunk without choices has the usage; `data: [DONE]` ends the stream. A failure after the first content is the last event, `data: {"error": {…}}`, and the connection closes without `[DONE]`. Lines that begin with a colon are comments, sent after 15 seconds of silence.',
    parameters: headerParameters(ASKING),
    requestBody: jsonBody("ChatCompletionRequest", EXAMPLE),
    responses: {
      "200": {
        description: "The completion, or the stream of its chunks.",
        headers: headerRefs([...EVERYWHERE, ...ROUTING]),
        content: {
          "application/json": { schema: refTo("ChatCompletion") },
          "text/event-stream": { schema: { anyOf: [refTo("ChatCompletionChunk"), refTo("Error")] } },
        },
      },
      ...errorResponses(ROUTE_FAILURES.chat),
    },
  };
}

function routeOperation(): object {
  return {
    ...ofOpenai("explainRoute", "Explain where a chat completion would go"),
    description:
      "Takes the request of a chat completion, or with the version header of the Messages API that of a message, checks it as such, and answers with the models that would be tried, in order and with the reasons. Nothing is sent to a provider or reserved. It counts as a request.",
    parameters: headerParameters(ASKING),
    requestBody: jsonBody("ChatCompletionRequest", EXAMPLE),
    responses: {
      "200": whole("The plan.", "RoutePlan", EVERYWHERE),
      ...errorResponses(ROUTE_FAILURES.chat),
    },
  };
}

const ONLY_STORED = "Where the gateway stores no responses, and for unknown and expired ones, the answer is 404.";

const STORED_ID = {
  name: "id",
  in: "path",
  required: true,
  description: "The response’s ID.",
  schema: { type: "string" },
} as const;

function responsesBody(): object {
  return jsonBody("ResponsesRequest", {
    model: "alpha-haiku-4.5",
    instructions: "Be brief.",
    input: "Hello!",
    max_output_tokens: 1000,
  });
}

function responsesOperation(): object {
  return {
    ...ofOpenai("createResponse", "Create a response"),
    description:
      "Runs one completion in the format of OpenAI’s Responses API. Unless the gateway stores responses, each request has the whole conversation, and `previous_response_id` is refused. State of the provider travels in the `encrypted_content` of reasoning items when `include` asks for it. With `stream` the answer comes as server-sent events, numbered by `sequence_number`: `response.created` and `response.in_progress`, the events of each item, and one of `response.completed`, `response.incomplete` and `response.failed`. After 15 seconds of silence a `keepalive` event is sent. A WebSocket at this path is refused with 426.",
    parameters: headerParameters(ASKING),
    requestBody: responsesBody(),
    responses: {
      "200": {
        description: "The response, or the stream of its events.",
        headers: headerRefs([...EVERYWHERE, ...ROUTING]),
        content: {
          "application/json": { schema: refTo("Response") },
          "text/event-stream": { schema: refTo("ResponseEvent") },
        },
      },
      ...errorResponses(ROUTE_FAILURES.chat),
    },
  };
}

function imagesOperation(): object {
  return {
    ...ofOpenai("createImage", "Create pictures"),
    description:
      "Makes pictures from a text, by a model with the output modality `image`. Pictures are base64 in the answer; Parley keeps none. With `stream` each comes as an event `image_generation.completed`. What the provider lacks is omitted and listed in `parley.omitted`.",
    parameters: headerParameters(ASKING),
    requestBody: jsonBody("ImageRequest", {
      model: "beta-3-pro-image-preview",
      prompt: "A lighthouse in fog",
      size: "1536x1024",
    }),
    responses: pictureResponses("ImageCompleted"),
  };
}

function imageEditsOperation(): object {
  const picture = "data:image/png;base64,iVBORw0KGgo=";
  return {
    ...ofOpenai("editImage", "Edit pictures"),
    description:
      "Makes pictures from others and a text, by a model with the output modality `image`: the pictures and the text are one message. What the provider lacks is omitted and listed in `parley.omitted`: most lack `mask`. With `stream` each picture comes as an event `image_edit.completed`.",
    parameters: headerParameters(ASKING),
    requestBody: {
      required: true,
      description: "A form or JSON of at most 32 MiB, not compressed, with at most 16 pictures.",
      content: {
        "multipart/form-data": { schema: refTo("ImageEditForm") },
        "application/json": {
          schema: refTo("ImageEditRequest"),
          example: { model: "beta-3-pro-image-preview", prompt: "Add fog", images: [{ image_url: picture }] },
        },
      },
    },
    responses: pictureResponses("ImageEditCompleted"),
  };
}

function pictureResponses(event: string): object {
  return {
    "200": {
      description: "The pictures, or a stream of events with one each.",
      headers: headerRefs([...EVERYWHERE, ...ROUTING]),
      content: {
        "application/json": { schema: refTo("ImageList") },
        "text/event-stream": { schema: { anyOf: [refTo(event), refTo("Error")] } },
      },
    },
    ...errorResponses(ROUTE_FAILURES.chat),
  };
}

function whole(description: string, schema: string, headers: readonly string[]): object {
  return { description, headers: headerRefs(headers), content: { "application/json": { schema: refTo(schema) } } };
}

function healthOperation(operationId: string, summary: string, answers: Readonly<Record<string, string>>): object {
  return {
    operationId,
    summary,
    tags: ["Health"],
    security: [],
    responses: Object.fromEntries(
      Object.entries(answers).map(([code, status]) => {
        const schema = { type: "object", properties: { status: { const: status } }, required: ["status"] };
        const headers = headerRefs(["x-request-id"]);
        return [code, { description: status, headers, content: { "application/json": { schema } } }];
      }),
    ),
  };
}

function methods(): DescMethod[] {
  return CONNECT_SERVICES.flatMap((service): readonly DescMethod[] => service.methods);
}

const ENVELOPES =
  "Each message has a byte of flags and four of length before it; the last one says how the call ended.";

/** Messages of a streaming RPC have envelopes, which no schema can describe: only names and messages are listed. */
function connectPaths(comments: ProtoComments): Record<string, object> {
  return Object.fromEntries(
    methods().map(({ name, parent, input, output, methodKind }) => {
      const isRouted = parent.name === "CompletionService" || parent.name === "EmbeddingService";
      const headers = isRouted ? [...EVERYWHERE, ...ROUTING] : EVERYWHERE;
      const isStream = methodKind === "server_streaming";
      const type = isStream ? "application/connect+json" : "application/json";
      const service = parent.name.replace(/Service$/, "");
      const operation = {
        operationId: `connect${service}${name}`,
        summary: `${parent.name}.${name}`,
        tags: ["Connect"],
        ...described(comments.get(`${parent.typeName}.${name}`), isStream ? ENVELOPES : undefined),
        parameters: [
          { name: "connect-protocol-version", in: "header", schema: { const: "1" } },
          {
            name: "connect-timeout-ms",
            in: "header",
            description: "How long you will wait, in milliseconds.",
            schema: { type: "string", pattern: "^[0-9]{1,10}$" },
          },
          ...(isRouted ? headerParameters(LABEL_PARAMETERS) : []),
        ],
        requestBody: { required: true, content: { [type]: { schema: refTo(input.typeName) } } },
        responses: {
          "200": {
            description: isStream ? "The messages, and how the call ended." : "The answer.",
            headers: headerRefs(headers),
            content: { [type]: { schema: refTo(output.typeName) } },
          },
          default: {
            description: "A failure; its `details` hold `google.rpc.ErrorInfo` with the failure’s code as `reason`.",
            content: { "application/json": { schema: refTo("ConnectError") } },
          },
        },
      };
      return [`/${parent.typeName}/${name}`, { post: operation }];
    }),
  );
}

function connectErrorSchema(): object {
  const detail = {
    type: "object",
    properties: {
      type: { type: "string", description: "The message’s full name." },
      value: { type: "string", contentEncoding: "base64" },
      debug: { description: "The same as JSON, for people." },
    },
    required: ["type", "value"],
  };
  return {
    description: "Why a call did not work, in the Connect protocol.",
    type: "object",
    properties: {
      code: { type: "string", description: "The gRPC status in lower case, such as `invalid_argument`." },
      message: { type: "string", description: "What is wrong, for people." },
      details: { type: "array", items: detail },
    },
    required: ["code"],
  };
}
