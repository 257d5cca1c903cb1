import { isObject } from "../lenient.ts";

/** Formats of strings that the provider enforces. */
const FORMATS: ReadonlySet<unknown> = new Set([
  "date-time",
  "time",
  "date",
  "duration",
  "email",
  "hostname",
  "uri",
  "ipv4",
  "ipv6",
  "uuid",
]);

/** Keywords that say nothing about values. */
const SILENT: ReadonlySet<string> = new Set(["$schema", "$id", "$comment"]);

/** Keywords whose values are schemas by name. */
const NAMED: ReadonlySet<string> = new Set(["properties", "$defs", "definitions"]);

/** Keywords that are kept as they are. */
const KEPT: ReadonlySet<string> = new Set(["type", "title", "description", "enum", "const", "required", "$ref"]);

/**
 * A JSON schema in the form that the provider enforces: objects are closed, `oneOf` is `anyOf`, and what it has no
 * rule for (lengths, ranges, patterns) goes into the description, where the model still reads it. Never throws; a
 * schema that is already in the form comes back equal.
 */
export function toStrictSchema(schema: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const strict: Record<string, unknown> = {};
  const told: string[] = [];
  for (const [keyword, value] of Object.entries(schema)) {
    if (SILENT.has(keyword)) continue;
    if (keyword === "additionalProperties" && typeof value === "boolean") {
      if (isObjectSchema(schema)) strict[keyword] = false;
    } else if (KEPT.has(keyword) || isEnforced(keyword, value)) strict[keyword] = value;
    else if (NAMED.has(keyword) && isObject(value)) strict[keyword] = eachByName(value);
    else if (keyword === "items" && isObject(value)) strict[keyword] = toStrictSchema(value);
    else if (isAlternatives(keyword) && Array.isArray(value))
      strict[keyword === "oneOf" ? "anyOf" : keyword] = value.map(toStrictValue);
    else told.push(`${keyword}: ${JSON.stringify(value)}`);
  }
  if (isObjectSchema(schema)) {
    strict["type"] ??= "object";
    strict["additionalProperties"] = false;
  }
  if (told.length > 0) strict["description"] = describe(schema["description"], told);
  return strict;
}

function isEnforced(keyword: string, value: unknown): boolean {
  return (keyword === "format" && FORMATS.has(value)) || (keyword === "minItems" && (value === 0 || value === 1));
}

function isAlternatives(keyword: string): boolean {
  return keyword === "anyOf" || keyword === "oneOf" || keyword === "allOf";
}

function isObjectSchema({ type, properties }: Readonly<Record<string, unknown>>): boolean {
  if (type === undefined) return isObject(properties);
  return type === "object" || (Array.isArray(type) && type.includes("object"));
}

function eachByName(schemas: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(schemas).map(([name, value]) => [name, toStrictValue(value)]));
}

/** A schema may also be `true` (anything) or `false`, which the provider does not know. */
function toStrictValue(value: unknown): unknown {
  return isObject(value) ? toStrictSchema(value) : {};
}

function describe(description: unknown, told: readonly string[]): string {
  const said = typeof description === "string" && description !== "" ? [description] : [];
  return [...said, told.join(", ")].join("\n");
}
