import { z } from "zod";
import * as request from "../../../formats/openai-chat/schema.ts";
import * as answer from "./answer-schemas.ts";
import { type Detail, REQUEST_TEXTS, type SchemaTexts } from "./request-texts.ts";

/** A JSON schema, as far as it is looked into here. */
export interface JsonSchema {
  readonly [keyword: string]: unknown;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
}

/** What the server reads, by the names that the document gives to it. */
const READ = {
  ChatCompletionRequest: request.chatRequest,
  RequestMessage: request.message,
  ContentPart: request.part,
  TextPart: request.textPart,
  RefusalPart: request.refusalPart,
  ImagePart: request.imagePart,
  AudioPart: request.audioPart,
  FilePart: request.filePart,
  FunctionCall: request.functionCall,
  CustomCall: request.customCall,
  ThinkingBlock: request.thinkingBlock,
  ExtraContent: request.thoughtSignature,
  CacheControl: request.cacheControl,
  FunctionTool: request.functionTool,
  CustomTool: request.customTool,
  NamedFunction: request.namedFunction,
  NamedCustomTool: request.namedCustom,
  AllowedTools: request.allowedTools,
  TextFormat: request.textFormat,
  JsonObjectFormat: request.jsonObjectFormat,
  JsonSchemaFormat: request.jsonSchemaFormat,
} as const;

/** What it writes. */
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
} as const;

/** Where a schema of the document is. */
export function refTo(name: string): { readonly $ref: string } {
  return { $ref: `#/components/schemas/${name}` };
}

/** The schemas of everything that is read and written in the OpenAI format, by their names. */
export function openaiSchemas(): Record<string, JsonSchema> {
  return {
    ...Object.fromEntries(
      Object.entries(toJsonSchemas(READ)).map(([name, schema]) => [name, explained(schema, REQUEST_TEXTS[name] ?? {})]),
    ),
    ...toJsonSchemas(WRITTEN),
  };
}

function toJsonSchemas(types: Readonly<Record<string, z.ZodType>>): Record<string, JsonSchema> {
  const registry = z.registry<{ id: string }>();
  for (const [id, type] of Object.entries(types)) registry.add(type, { id });
  // As input: an answer may get more fields some day, and clients should not mind.
  const { schemas } = z.toJSONSchema(registry, { io: "input", uri: (id) => refTo(id).$ref });
  return Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => {
      const { $schema: _, $id: __, ...rest } = schema as JsonSchema;
      return [name, plain(rest) as JsonSchema];
    }),
  );
}

/** The same schema, with a choice of one inside a choice of another, or of nothing, written as one choice. */
function plain(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(plain);
  if (typeof schema !== "object" || schema === null) return schema;
  const copy = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, plain(value)]));
  if (!Array.isArray(copy["anyOf"])) return copy;
  const { anyOf, ...rest } = copy as { anyOf: JsonSchema[] } & JsonSchema;
  const choices = anyOf.flatMap((each) => (isOnly(each, "anyOf") ? [...each.anyOf!] : [each]));
  const [first, second, third] = choices;
  const isMaybe = third === undefined && second?.["type"] === "null" && typeof first?.["type"] === "string";
  if (!isMaybe || first["enum"] !== undefined) return { ...rest, anyOf: choices };
  return { ...first, ...rest, type: [first["type"], "null"] };
}

function isOnly(schema: JsonSchema, keyword: string): boolean {
  return Object.keys(schema).length === 1 && keyword in schema;
}

/** A schema with what is said of it and its fields. Throws a TypeError for a field that it does not have. */
function explained(schema: JsonSchema, texts: SchemaTexts): JsonSchema {
  let result = schema;
  for (const [path, text] of Object.entries(texts)) {
    const detail: Detail = typeof text === "string" ? { description: text } : text;
    if (detail.description !== "") result = withDetail(result, path === "" ? [] : path.split("."), detail);
  }
  return result;
}

function withDetail(schema: JsonSchema, [key, ...rest]: readonly string[], detail: Detail): JsonSchema {
  if (key === undefined) return { ...schema, ...detail };
  const inner = schema.properties?.[key];
  if (inner !== undefined)
    return { ...schema, properties: { ...schema.properties, [key]: withDetail(inner, rest, detail) } };
  const anyOf = schema.anyOf?.map((each) => (each.properties?.[key] ? withDetail(each, [key, ...rest], detail) : each));
  if (anyOf === undefined) throw new TypeError(`a text about ${key}, which is no field`);
  return { ...schema, anyOf };
}
