import { z } from "zod";
import * as messages from "../../../formats/openai-chat/message-schema.ts";
import { chatRequest } from "../../../formats/openai-chat/schema.ts";
import { embeddingRequest } from "../../../formats/openai-embeddings/schema.ts";
import {
  imageEditForm,
  imageEditRequest,
  imageReference,
  imageRequest,
} from "../../../formats/openai-images/schema.ts";
import * as tools from "../../../formats/openai-chat/tool-schema.ts";
import * as answer from "./answer-schemas.ts";
import { READ_RESPONSES, WRITTEN_RESPONSES } from "./responses-schemas.ts";

/** The parts of a JSON schema that are used here. */
export interface JsonSchema {
  readonly [keyword: string]: unknown;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
}

/** Schemas of requests by their names in the document. */
const READ = {
  ChatCompletionRequest: chatRequest,
  EmbeddingRequest: embeddingRequest,
  ImageRequest: imageRequest,
  ImageEditRequest: imageEditRequest,
  ImageEditForm: imageEditForm,
  ImageReference: imageReference,
  RequestMessage: messages.message,
  ContentPart: messages.part,
  TextPart: messages.textPart,
  RefusalPart: messages.refusalPart,
  ImagePart: messages.imagePart,
  AudioPart: messages.audioPart,
  FilePart: messages.filePart,
  FunctionCall: messages.functionCall,
  CustomCall: messages.customCall,
  ThinkingBlock: messages.thinkingBlock,
  ExtraContent: messages.thoughtSignature,
  CacheControl: messages.cacheControl,
  FunctionTool: tools.functionTool,
  CustomTool: tools.customTool,
  NamedFunction: tools.namedFunction,
  NamedCustomTool: tools.namedCustom,
  AllowedTools: tools.allowedTools,
  TextFormat: tools.textFormat,
  JsonObjectFormat: tools.jsonObjectFormat,
  JsonSchemaFormat: tools.jsonSchemaFormat,
} as const;

/** Schemas of responses. */
const WRITTEN = {
  ChatCompletion: answer.chatCompletion,
  AnswerMessage: answer.answerMessage,
  AnswerText: answer.answerText,
  AnswerImage: answer.answerImage,
  AnswerExtraContent: answer.answerExtra,
  AnswerThinkingBlock: answer.answerThinking,
  AnswerToolCall: answer.answerCall,
  Logprobs: answer.logprobs,
  Usage: answer.usage,
  Parley: answer.parley,
  Attempt: answer.attempt,
  ChatCompletionChunk: answer.chatCompletionChunk,
  Delta: answer.delta,
  Model: answer.model,
  ModelList: answer.modelList,
  RoutePlan: answer.routePlan,
  EmbeddingList: answer.embeddingList,
  ImageList: answer.imageList,
  ImageCompleted: answer.imageCompleted,
  ImageEditCompleted: answer.imageEditCompleted,
} as const;

/** A reference to a schema of the document. */
export function refTo(name: string): { readonly $ref: string } {
  return { $ref: `#/components/schemas/${name}` };
}

/** The body of a request with a JSON schema of this document. */
export function jsonBody(schema: string, example: object): object {
  return {
    required: true,
    description: "At most 32 MiB of JSON, not compressed.",
    content: { "application/json": { schema: refTo(schema), example } },
  };
}

/** Schemas of the OpenAI format by name. */
export function openaiSchemas(): Record<string, JsonSchema> {
  return {
    ...toJsonSchemas({ ...READ, ...READ_RESPONSES }),
    ...toJsonSchemas({ ...WRITTEN, ...WRITTEN_RESPONSES }),
  };
}

/** Converts schemas with names, by which they refer to each other. */
export function toJsonSchemas(types: Readonly<Record<string, z.ZodType>>): Record<string, JsonSchema> {
  const registry = z.registry<{ id: string }>();
  for (const [id, type] of Object.entries(types)) registry.add(type, { id });
  // As inputs, which allow more fields: responses may get further ones.
  const { schemas } = z.toJSONSchema(registry, { io: "input", uri: (id) => refTo(id).$ref });
  return Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => {
      const { $schema: _, $id: __, ...rest } = schema as JsonSchema;
      return [name, plain(rest) as JsonSchema];
    }),
  );
}

/** Simplifies a schema: merges nested choices, and removes `additionalProperties`. */
function plain(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(plain);
  if (typeof schema !== "object" || schema === null) return schema;
  const entries = Object.entries(schema).filter(
    ([key, value]) => !(key === "additionalProperties" && isAnything(value)),
  );
  const copy = Object.fromEntries(entries.map(([key, value]) => [key, plain(value)]));
  if (!Array.isArray(copy["anyOf"])) return copy;
  const { anyOf, ...rest } = copy as { anyOf: JsonSchema[] } & JsonSchema;
  const choices = anyOf.flatMap((each) => (isOnly(each, "anyOf") ? [...each.anyOf!] : [each]));
  const [first, second, third] = choices;
  const isMaybe = third === undefined && second?.["type"] === "null" && typeof first?.["type"] === "string";
  if (!isMaybe || first["enum"] !== undefined) return { ...rest, anyOf: choices };
  return { ...first, ...rest, type: [first["type"], "null"] };
}

function isAnything(schema: unknown): boolean {
  return typeof schema === "object" && schema !== null && Object.keys(schema).length === 0;
}

function isOnly(schema: JsonSchema, keyword: string): boolean {
  return Object.keys(schema).length === 1 && keyword in schema;
}
