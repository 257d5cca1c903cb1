import { isObject } from "../wire/json.ts";
import { pathBelow } from "../wire/translation.ts";
import type { JsonObject } from "./wire.ts";

/** Keywords whose value is copied unchanged. */
const PLAIN: ReadonlySet<string> = new Set([
  "$id",
  "$anchor",
  "type",
  "format",
  "title",
  "description",
  "enum",
  "minItems",
  "maxItems",
  "minimum",
  "maximum",
  "required",
  "propertyOrdering",
]);

/** Keywords whose value is a schema, or a list of schemas. */
const SCHEMAS: ReadonlySet<string> = new Set(["items", "additionalProperties"]);
const LISTS: ReadonlySet<string> = new Set(["prefixItems", "anyOf", "oneOf"]);

/** The older and the newer keyword for referenced schemas. */
const DEFINITIONS: ReadonlySet<string> = new Set(["definitions", "$defs"]);

/** Annotations that do not affect validation. They are removed without a report. */
const NOTES: ReadonlySet<string> = new Set([
  "$schema",
  "$comment",
  "default",
  "example",
  "examples",
  "deprecated",
  "readOnly",
  "writeOnly",
]);

/** A schema for the answer, and the paths of the removed rules. */
export interface AnswerSchema {
  readonly schema: JsonObject;
  readonly dropped: readonly string[];
}

/**
 * Reduces a JSON Schema to the subset that the provider enforces on an answer. Rewrites rules that have an equivalent:
 * `const` becomes an `enum` with one value, `definitions` become `$defs`, an `allOf` with one entry is inlined. `path`
 * is the prefix of the reported paths.
 */
export function toAnswerSchema(schema: JsonObject, path: string): AnswerSchema {
  const dropped: string[] = [];
  return { schema: subset(schema, path, dropped), dropped };
}

function subset(schema: JsonObject, path: string, dropped: string[]): JsonObject {
  // The provider allows only `$defs` beside `$ref`.
  if (typeof schema["$ref"] === "string")
    return { $ref: toDefs(schema["$ref"]), ...definitions(schema, path, dropped) };
  const out: Record<string, unknown> = {};
  for (const [keyword, value] of Object.entries(schema)) {
    const at = pathBelow(path, keyword);
    if (PLAIN.has(keyword)) out[keyword] = value;
    else if (SCHEMAS.has(keyword)) out[keyword] = isObject(value) ? subset(value, at, dropped) : value;
    else if (LISTS.has(keyword) && Array.isArray(value)) out[keyword] = list(value, at, dropped);
    else if (keyword === "properties" && isObject(value)) out[keyword] = named(value, at, dropped);
    else if (keyword === "const") out["enum"] = [value];
    else if (keyword === "allOf" && isSingle(value)) Object.assign(out, subset(value[0], `${at}[0]`, dropped));
    else if (!NOTES.has(keyword) && !DEFINITIONS.has(keyword)) dropped.push(at);
  }
  return { ...out, ...definitions(schema, path, dropped) };
}

function list(schemas: readonly unknown[], path: string, dropped: string[]): unknown[] {
  return schemas.map((schema, index) => (isObject(schema) ? subset(schema, `${path}[${index}]`, dropped) : schema));
}

function named(schemas: JsonObject, path: string, dropped: string[]): JsonObject {
  const entries = Object.entries(schemas).map(([name, schema]) => [
    name,
    isObject(schema) ? subset(schema, pathBelow(path, name), dropped) : schema,
  ]);
  return Object.fromEntries(entries) as JsonObject;
}

/** Returns the schema's definitions, all under `$defs`; an empty object without any. */
function definitions(schema: JsonObject, path: string, dropped: string[]): JsonObject {
  const all: Record<string, unknown> = {};
  for (const keyword of DEFINITIONS) {
    const value = schema[keyword];
    if (isObject(value)) Object.assign(all, named(value, pathBelow(path, keyword), dropped));
  }
  return Object.keys(all).length === 0 ? {} : { $defs: all };
}

const toDefs = (reference: string): string => reference.replace(/^#\/definitions\//, "#/$defs/");

const isSingle = (value: unknown): value is readonly [JsonObject] =>
  Array.isArray(value) && value.length === 1 && isObject(value[0]);
