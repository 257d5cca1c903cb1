import { isObject, type Json } from "./json.ts";
import { pathBelow } from "./translation.ts";

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

/** Keywords without meaning for values; dropped. */
const SILENT: ReadonlySet<string> = new Set(["$schema", "$id", "$comment"]);

/** Keywords whose values are schemas by name. */
const NAMED: ReadonlySet<string> = new Set(["properties", "$defs", "definitions"]);

/** Keywords that are kept unchanged. */
const KEPT: ReadonlySet<string> = new Set(["type", "title", "description", "enum", "const", "required", "$ref"]);

/** Annotations: moved to the description like other keywords, but not logged, because they constrain nothing. */
const NOTES: ReadonlySet<string> = new Set(["default", "example", "examples", "deprecated", "readOnly", "writeOnly"]);

/** A schema that the provider enforces, and the paths of rules that it does not enforce. */
export interface StrictSchema {
  readonly schema: Record<string, unknown>;
  readonly unenforced: readonly string[];
}

/**
 * A JSON schema in the form that the provider enforces: objects are closed, `oneOf` becomes `anyOf`, and rules that the provider cannot
 * enforce (lengths, ranges, patterns) are moved to the description, where the model still reads them. `path` is the prefix of the
 * reported paths. Never throws; a schema that already has the form is returned equal.
 */
export function toStrictSchema(schema: Json, path: string): StrictSchema {
  const unenforced: string[] = [];
  return { schema: toStrict(schema, { path, unenforced }), unenforced };
}

/** Whether a schema is enforced unchanged. */
export function isStrictSchema(schema: Json): boolean {
  return JSON.stringify(toStrictSchema(schema, "").schema) === JSON.stringify(schema);
}

/** Path of a subschema, and the collected paths of unenforced rules. */
interface Position {
  readonly path: string;
  readonly unenforced: string[];
}

function toStrict(schema: Json, { path, unenforced }: Position): Record<string, unknown> {
  const strict: Record<string, unknown> = {};
  const moved: string[] = [];
  for (const [keyword, value] of Object.entries(schema)) {
    const position = { path: pathBelow(path, keyword), unenforced };
    if (SILENT.has(keyword)) continue;
    if (keyword === "additionalProperties" && typeof value === "boolean") {
      if (!isObjectSchema(schema)) continue;
      strict[keyword] = false;
      if (value) unenforced.push(position.path);
    } else if (KEPT.has(keyword) || isEnforced(keyword, value)) strict[keyword] = value;
    else if (NAMED.has(keyword) && isObject(value)) strict[keyword] = eachByName(value, position);
    else if (keyword === "items" && isObject(value)) strict[keyword] = toStrict(value, position);
    else if (isAlternatives(keyword) && Array.isArray(value))
      strict[keyword === "oneOf" ? "anyOf" : keyword] = eachByIndex(value, position);
    else {
      moved.push(`${keyword}: ${JSON.stringify(value)}`);
      if (!NOTES.has(keyword)) unenforced.push(position.path);
    }
  }
  if (isObjectSchema(schema)) {
    strict["type"] ??= "object";
    strict["additionalProperties"] = false;
  }
  if (moved.length > 0) strict["description"] = describe(schema["description"], moved);
  return strict;
}

function isEnforced(keyword: string, value: unknown): boolean {
  return (keyword === "format" && FORMATS.has(value)) || (keyword === "minItems" && (value === 0 || value === 1));
}

function isAlternatives(keyword: string): boolean {
  return keyword === "anyOf" || keyword === "oneOf" || keyword === "allOf";
}

function isObjectSchema({ type, properties }: Json): boolean {
  if (type === undefined) return isObject(properties);
  return type === "object" || (Array.isArray(type) && type.includes("object"));
}

function eachByName(schemas: Json, { path, unenforced }: Position): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(schemas).map(([name, value]) => [
      name,
      toStrictValue(value, { path: pathBelow(path, name), unenforced }),
    ]),
  );
}

function eachByIndex(schemas: readonly unknown[], { path, unenforced }: Position): unknown[] {
  return schemas.map((value, index) => toStrictValue(value, { path: `${path}[${index}]`, unenforced }));
}

/** Converts a subschema, which may also be `true` (anything) or `false`; the provider does not know these. */
function toStrictValue(value: unknown, position: Position): unknown {
  if (value === false) position.unenforced.push(position.path);
  return isObject(value) ? toStrict(value, position) : {};
}

function describe(description: unknown, told: readonly string[]): string {
  const said = typeof description === "string" && description !== "" ? [description] : [];
  return [...said, told.join(", ")].join("\n");
}
