import { z } from "zod";
import type { JsonSchema } from "../../../src/inbound/http/openapi/components.ts";
import { chatRequest } from "../../../src/formats/openai-chat/schema.ts";
import { type JsonTree, toTree } from "./json-tree.ts";
import { oddValue } from "./json-mutations.ts";
import type { Random } from "./random.ts";

/** The request schemas as JSON schema, so that new fields are fuzzed automatically. */
const SCHEMA = z.toJSONSchema(chatRequest, { unrepresentable: "any", io: "input" }) as JsonSchema;

const TEXTS = ["hi", "{}", "auto", "user", "get_weather", "call_1", "", "日本🗼", "data:image/png;base64,iVBORw0KGgo="];
const NUMBERS = ["0", "1", "2", "0.5", "100", "-1", "1e3", "4096"];

/** Draws values; this percentage of them is invalid. */
interface Drawing {
  readonly random: Random;
  readonly odd: number;
}

/**
 * Draws a request with some of the schema's fields; in half of the requests all types are valid. Ends with `prompt`.
 */
export function schemaBody(model: string, prompt: string, random: Random): JsonTree {
  const drawing: Drawing = { random, odd: random.percent(50) ? 0 : 5 };
  const { messages, ...properties } = SCHEMA.properties!;
  const fields = Object.entries(properties)
    .filter(([key]) => key !== "model" && random.percent(12))
    .map(([key, schema]) => [JSON.stringify(key), valueOf(schema, drawing)] as const);
  const said = Array.from({ length: random.below(4) }, () => valueOf(messages!.items!, drawing));
  const last = toTree({ role: "user", content: prompt });
  return {
    kind: "object",
    fields: [['"model"', text(model)], ['"messages"', { kind: "list", items: [...said, last] }], ...fields],
  };
}

function valueOf(schema: JsonSchema, drawing: Drawing): JsonTree {
  const { random, odd } = drawing;
  if (random.percent(odd)) return oddValue(random);
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices !== undefined) return valueOf(random.pick(choices), drawing);
  const { type, properties, items, const: constant } = schema;
  if (constant !== undefined) return text(constant);
  if (Array.isArray(schema["enum"])) return text(random.pick(schema["enum"] as unknown[]));
  switch (type) {
    case "object":
      return objectOf(schema, properties ?? {}, drawing);
    case "array": {
      const count = 1 + random.below(3);
      return { kind: "list", items: Array.from({ length: count }, () => valueOf(items ?? {}, drawing)) };
    }
    case "string":
      return text(random.pick(TEXTS));
    case "integer":
    case "number":
      return { kind: "text", text: random.pick(NUMBERS) };
    case "boolean":
      return text(random.percent(50));
    case "null":
      return text(null);
    default:
      return oddValue(random);
  }
}

function objectOf(schema: JsonSchema, properties: Readonly<Record<string, JsonSchema>>, drawing: Drawing): JsonTree {
  const { random } = drawing;
  const required = new Set(schema["required"] as readonly string[] | undefined);
  const fields = Object.entries(properties)
    .filter(([key]) => required.has(key) || random.percent(40))
    .map(([key, inner]) => [JSON.stringify(key), valueOf(inner, drawing)] as const);
  if (fields.length > 0 || schema["additionalProperties"] === undefined) return { kind: "object", fields };
  return { kind: "object", fields: [[JSON.stringify(random.pick(TEXTS)), oddValue(random)]] };
}

function text(value: unknown): JsonTree {
  return { kind: "text", text: JSON.stringify(value) };
}
