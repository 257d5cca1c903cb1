import type { ErrorRow, Reference, Shape, Topic } from "../../web/docs/reference.ts";
import { errorAnchor } from "../../web/docs/reference.ts";
import { Failure, type FailureCode } from "../../src/core/failure.ts";
import { MAX_FALLBACKS, MAX_MESSAGES, MAX_STOPS } from "../../src/core/validate.ts";
import { FAILURE_TABLE, GRPC_STATUS, retryAfterMs } from "../../src/inbound/failure-table.ts";
import { MAX_BODY_BYTES } from "../../src/inbound/http/exchange.ts";
import { MAX_REQUEST_JSON } from "../../src/encoding/json-size.ts";
import { openaiSchemas } from "../../src/inbound/http/openapi/components.ts";
import { errorCodesOf } from "../../src/inbound/http/openapi/errors.ts";
import { ANSWER_HEADERS, type HeaderText, REQUEST_HEADERS } from "../../src/inbound/http/openapi/headers.ts";
import type { Contract } from "./contract.ts";
import { readGrpcShapes } from "./grpc-shapes.ts";
import { REQUEST_TEXTS } from "../../src/inbound/http/openapi/request-texts.ts";
import { toReadShape, toWrittenShape } from "./http-shapes.ts";

/** Which shapes are about the same thing, in the order of the page. Each shape is in exactly one topic. */
const TOPICS: readonly { id: string; title: string; http: readonly string[]; grpc: readonly string[] }[] = [
  {
    id: "request",
    title: "Request",
    http: ["ChatCompletionRequest"],
    grpc: ["CompletionRequest", "Modality", "ReasoningEffort"],
  },
  {
    id: "messages",
    title: "Messages",
    http: [
      "RequestMessage",
      "ContentPart",
      "TextPart",
      "ImagePart",
      "AudioPart",
      "FilePart",
      "RefusalPart",
      "ThinkingBlock",
      "ExtraContent",
      "CacheControl",
    ],
    grpc: ["Message", "Role", "ContentPart", "Image", "Audio", "File", "ReasoningBlock", "Annotation", "CacheMark"],
  },
  {
    id: "tools",
    title: "Tools",
    http: [
      "FunctionTool",
      "CustomTool",
      "NamedFunction",
      "NamedCustomTool",
      "AllowedTools",
      "FunctionCall",
      "CustomCall",
    ],
    grpc: ["Tool", "FunctionTool", "CustomTool", "ToolChoice", "AllowedTools", "ToolMode", "ToolCall"],
  },
  {
    id: "formats",
    title: "Forms of the answer",
    http: ["TextFormat", "JsonObjectFormat", "JsonSchemaFormat"],
    grpc: ["ResponseFormat", "TextFormat", "JsonObjectFormat", "JsonSchemaFormat", "ImageOptions", "AudioOptions"],
  },
  {
    id: "answer",
    title: "Answer",
    http: [
      "ChatCompletion",
      "AnswerMessage",
      "AnswerText",
      "AnswerImage",
      "AnswerToolCall",
      "AnswerThinkingBlock",
      "AnswerExtraContent",
      "Logprobs",
      "Usage",
    ],
    grpc: ["Completion", "Choice", "FinishReason", "Usage", "Logprobs", "TokenLogprob"],
  },
  {
    id: "routing",
    title: "How an answer came about",
    http: ["Parley", "Attempt"],
    grpc: ["Report", "Attempt", "Clamp", "AttemptList"],
  },
  {
    id: "chunks",
    title: "Chunks of a stream",
    http: ["ChatCompletionChunk", "Delta"],
    grpc: ["CompletionChunk", "CompletionStart", "Delta", "ToolCallDelta", "ChoiceFinish"],
  },
  {
    id: "model-shapes",
    title: "Models",
    http: ["ModelList", "Model"],
    grpc: ["ListModelsRequest", "ListModelsResponse", "GetModelRequest", "Model"],
  },
  {
    id: "key-shapes",
    title: "The key of a call",
    http: [],
    grpc: ["GetCurrentKeyRequest", "Key", "Capability", "Limits"],
  },
];

/** Everything that the page of the API reference shows beside its own words. Throws for a shape without a topic. */
export function makeReference({ descriptors, files }: Contract): Reference {
  const grpc = readGrpcShapes(descriptors);
  const http = new Map(
    Object.entries(openaiSchemas()).map(([name, schema]) => [
      name,
      name in REQUEST_TEXTS ? toReadShape(name, schema) : toWrittenShape(name, schema),
    ]),
  );
  const topics = TOPICS.map(({ id, title, ...names }): Topic => ({
    id,
    title,
    http: names.http.map((name) => take(http, name)),
    grpc: names.grpc.map((name) => take(grpc.shapes, name)),
  }));
  requireAll(
    http,
    TOPICS.flatMap(({ http: names }) => names),
  );
  requireAll(
    grpc.shapes,
    TOPICS.flatMap(({ grpc: names }) => names),
  );
  return {
    topics,
    methods: grpc.methods,
    headers: { request: toHeaders(REQUEST_HEADERS, "request"), answer: toHeaders(ANSWER_HEADERS, "header") },
    errors: (Object.keys(FAILURE_TABLE) as FailureCode[]).map(toErrorRow),
    limits: {
      bodyMebibytes: MAX_BODY_BYTES / 1024 / 1024,
      jsonDepth: MAX_REQUEST_JSON.depth,
      jsonValues: MAX_REQUEST_JSON.values,
      messages: MAX_MESSAGES,
      fallbacks: MAX_FALLBACKS,
      stops: MAX_STOPS,
    },
    downloads: [...files].map(([path, { length }]) => ({ path: `/proto/${path}`, bytes: length })),
  };
}

function take(shapes: ReadonlyMap<string, Shape>, name: string): Shape {
  const shape = shapes.get(name);
  if (shape === undefined) throw new TypeError(`the reference speaks of ${name}, which there is not`);
  return shape;
}

function requireAll(shapes: ReadonlyMap<string, Shape>, named: readonly string[]): void {
  const missing = [...shapes.keys()].filter((name) => !named.includes(name));
  if (missing.length > 0) throw new TypeError(`${missing.join(", ")} has no topic in the reference`);
}

function toHeaders(texts: Readonly<Record<string, HeaderText>>, prefix: string): Reference["headers"]["answer"] {
  return Object.entries(texts).map(([name, { description, when }]) => ({
    anchor: `${prefix}-${name}`,
    name,
    text: description,
    ...(when !== undefined && { when }),
  }));
}

function toErrorRow(code: FailureCode): ErrorRow {
  const { http, type, grpc, final: isFinal } = FAILURE_TABLE[code];
  return {
    anchor: errorAnchor(code),
    code,
    ...(code !== "cancelled" && { http }),
    type,
    errorCodes: code === "unauthenticated" || code === "cancelled" ? [] : errorCodesOf(code),
    grpc: GRPC_STATUS.find(([, number]) => number === grpc)![0],
    isFinal,
    tellsWait: retryAfterMs(new Failure(code, "")) !== undefined,
  };
}
