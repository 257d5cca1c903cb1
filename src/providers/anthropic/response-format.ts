import type { JsonSchemaFormat } from "../../../gen/parley/v1/completion_pb.js";
import { invalidField } from "../../core/failure.ts";
import { isObject, parsed } from "../wire/lenient.ts";
import type { TranslationContext } from "./context.ts";
import { toStrictSchema } from "./schema.ts";
import type { TextBlock } from "./wire.ts";

const FORMAT_FIELD = "response_format.json_schema";
const SCHEMA_FIELD = `${FORMAT_FIELD}.schema`;

const JSON_ONLY =
  "Answer with exactly one JSON object and nothing else: no introduction, no explanation, no code fence around it.";

/** The request's JSON format: enforced by the provider, requested by an instruction, or neither. */
export interface ResponseFormatFields {
  readonly format?: { readonly type: "json_schema"; readonly schema: Record<string, unknown> };
  /** Appended to the system prompt. */
  readonly instruction?: TextBlock;
}

/**
 * Maps `response_format`. Without a JSON mode of the model it becomes an instruction. A schema or rule that is not
 * enforced is logged as omitted. Throws `invalid_request` for an invalid schema.
 */
export function toResponseFormat({ request, model, log }: TranslationContext): ResponseFormatFields {
  const format = request.responseFormat?.format;
  if (format?.case !== "jsonObject" && format?.case !== "jsonSchema") return {};
  const given = format.case === "jsonSchema" ? readSchema(format.value) : undefined;
  if (given === undefined) return { instruction: { type: "text", text: JSON_ONLY } };
  if (model.capabilities.jsonSchema) {
    const { schema, unenforced } = toStrictSchema(given, SCHEMA_FIELD);
    for (const field of unenforced) log.omit(field);
    return { format: { type: "json_schema", schema } };
  }
  log.omit(FORMAT_FIELD);
  return {
    instruction: { type: "text", text: `${JSON_ONLY} It satisfies this JSON schema:\n${JSON.stringify(given)}` },
  };
}

/** Undefined without a schema: any JSON is valid. */
function readSchema({ schemaJson, description }: JsonSchemaFormat): Record<string, unknown> | undefined {
  if (schemaJson === "") return undefined;
  const schema = parsed(schemaJson);
  if (!isObject(schema)) throw invalidField(SCHEMA_FIELD, "must be a JSON schema");
  return description === "" || schema["description"] !== undefined ? schema : { ...schema, description };
}
