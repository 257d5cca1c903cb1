import type { CompletionRequest, JsonSchemaFormat } from "../../../gen/parley/v1/completion_pb.js";
import { invalidField } from "../../core/failure.ts";
import type { UpstreamModel } from "../../core/provider.ts";
import type { TranslationLog } from "../wire/translation.ts";
import { isObject, parsed } from "../wire/lenient.ts";
import { toAnswerSchema } from "./schema.ts";
import { checksSignatures } from "./signature.ts";
import type { GenerationConfig, JsonObject } from "./wire.ts";

/** How the answer's text is to look. */
export interface ResponseFormatFields extends Pick<GenerationConfig, "responseMimeType" | "responseJsonSchema"> {
  /** To be told to the model in words, where it has no mode for it. */
  readonly instruction: string | undefined;
}

const FREE: ResponseFormatFields = {
  responseMimeType: undefined,
  responseJsonSchema: undefined,
  instruction: undefined,
};

const FORMAT_FIELD = "response_format.json_schema";
const SCHEMA_FIELD = `${FORMAT_FIELD}.schema`;

/**
 * The request's `response_format`. A model without JSON schemas is told the schema in words and held to JSON; one that
 * cannot combine tools with a JSON mode is only told. A schema that is only told is listed, for nothing enforces it.
 */
export function toResponseFormat(
  request: CompletionRequest,
  model: UpstreamModel,
  log: TranslationLog,
): ResponseFormatFields {
  const format = request.responseFormat?.format;
  if (format?.case !== "jsonObject" && format?.case !== "jsonSchema") return FREE;
  const schema = format.case === "jsonSchema" ? readSchema(format.value) : undefined;
  const callsTools = request.tools.length > 0 && model.capabilities.tools;
  const jsonMode = checksSignatures(model) || !callsTools;
  const enforced = jsonMode && (schema === undefined || model.capabilities.jsonSchema);
  log.omitWhen(!enforced && schema !== undefined, FORMAT_FIELD);
  const responseMimeType = jsonMode ? "application/json" : undefined;
  if (!enforced) return { ...FREE, responseMimeType, instruction: inWords(schema) };
  if (schema === undefined) return { ...FREE, responseMimeType };
  const { schema: responseJsonSchema, dropped } = toAnswerSchema(schema, SCHEMA_FIELD);
  for (const field of dropped) log.omit(field);
  return { ...FREE, responseMimeType, responseJsonSchema };
}

/** Undefined for an empty schema: any JSON will do. */
function readSchema({ schemaJson, description }: JsonSchemaFormat): JsonObject | undefined {
  if (schemaJson === "") return undefined;
  const schema = parsed(schemaJson);
  if (!isObject(schema)) throw invalidField(SCHEMA_FIELD, "must be a JSON Schema object");
  if (Object.keys(schema).length === 0) return undefined;
  return description === "" || schema["description"] !== undefined ? schema : { ...schema, description };
}

function inWords(schema: JsonObject | undefined): string {
  const rule = "Answer with one JSON object and nothing else: no explanation before or after it, no code fence.";
  return schema === undefined ? rule : `${rule} It must satisfy this JSON Schema:\n${JSON.stringify(schema)}`;
}
