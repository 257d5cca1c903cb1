import type { ResponseFormat } from "../../../gen/parley/v1/completion_pb.js";
import type { Capabilities } from "../../core/provider.ts";
import type { TranslationLog } from "../wire/translation.ts";
import { readObject } from "./tools.ts";
import type { OpenAiMessage, OpenAiResponseFormat } from "./wire.ts";

/** The form of the answer's text: a field of the request, and where that is not enough an instruction to the model. */
export interface ResponseFormatFields {
  readonly format: OpenAiResponseFormat | undefined;
  readonly instruction: string | undefined;
}

/**
 * The answer's form. A model that does not enforce a schema is asked for a JSON object and told the schema; the request's
 * `response_format.json_schema` is then noted as left out. Throws `invalid_request` when the schema is not an object.
 */
export function toResponseFormat(
  responseFormat: ResponseFormat | undefined,
  { jsonSchema }: Capabilities,
  log: TranslationLog,
): ResponseFormatFields {
  const form = responseFormat?.format;
  if (form?.case === "jsonObject") return { format: { type: "json_object" }, instruction: undefined };
  if (form?.case !== "jsonSchema") return { format: undefined, instruction: undefined };
  const { name, description, schemaJson, strict } = form.value;
  const schema = schemaJson === "" ? undefined : readObject(schemaJson, "response_format.json_schema.schema");
  if (jsonSchema) {
    const format = { name, description: description || undefined, schema, strict };
    return { format: { type: "json_schema", json_schema: format }, instruction: undefined };
  }
  log.omit("response_format.json_schema");
  const purpose = description === "" ? "" : ` It is: ${description}`;
  const rule =
    schema === undefined ? "a JSON object" : `a JSON object that satisfies this JSON Schema: ${JSON.stringify(schema)}`;
  return { format: { type: "json_object" }, instruction: `Answer only with ${rule}.${purpose}` };
}

/** The conversation with `instruction` as the end of its leading system message, which it gets when it has none. */
export function instruct(messages: readonly OpenAiMessage[], instruction: string): OpenAiMessage[] {
  const [first, ...rest] = messages;
  if (first?.role !== "system") return [{ role: "system", content: instruction }, ...messages];
  const content =
    typeof first.content === "string"
      ? `${first.content}\n\n${instruction}`
      : [...first.content, { type: "text" as const, text: instruction }];
  return [{ ...first, content }, ...rest];
}
