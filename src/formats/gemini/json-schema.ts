type JsonObject = Readonly<Record<string, unknown>>;

/** Keywords whose value is a schema, a list of schemas, or schemas by name. */
const SCHEMAS: ReadonlySet<string> = new Set(["items", "additionalProperties", "not", "contains", "propertyNames"]);
const LISTS: ReadonlySet<string> = new Set(["anyOf", "oneOf", "allOf", "prefixItems"]);
const NAMED: ReadonlySet<string> = new Set(["properties", "patternProperties", "definitions", "$defs"]);
/** Keywords with counts, which are 64-bit numbers in the vendor's form, and therefore texts in its JSON. */
const COUNTS: ReadonlySet<string> = new Set([
  "minItems",
  "maxItems",
  "minLength",
  "maxLength",
  "minProperties",
  "maxProperties",
]);

/**
 * Converts a schema in the vendor's form, a part of OpenAPI 3.0, to JSON Schema: types in lower case, `nullable` as the type null,
 * and properties in the order of `propertyOrdering`. A JSON Schema is unchanged, except for types in upper case, which some clients of
 * the vendor use in JSON Schemas too.
 */
export function toJsonSchema(schema: JsonObject): JsonObject {
  const { nullable, propertyOrdering, ...rest } = schema;
  const out: Record<string, unknown> = {};
  for (const [keyword, value] of Object.entries(rest)) {
    if (keyword === "type") {
      const type = toType(value);
      if (type !== undefined) out["type"] = type;
    } else if (SCHEMAS.has(keyword)) out[keyword] = isObject(value) ? toJsonSchema(value) : value;
    else if (LISTS.has(keyword) && Array.isArray(value))
      out[keyword] = value.map((each: unknown) => (isObject(each) ? toJsonSchema(each) : each));
    else if (NAMED.has(keyword) && isObject(value)) out[keyword] = toNamed(value);
    else if (COUNTS.has(keyword) && typeof value === "string" && /^\d{1,15}$/.test(value)) out[keyword] = Number(value);
    else out[keyword] = value;
  }
  const { properties } = out;
  if (Array.isArray(propertyOrdering) && isObject(properties))
    out["properties"] = inOrder(properties, propertyOrdering);
  return nullable === true ? orNull(out) : out;
}

function toNamed(schemas: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => [name, isObject(schema) ? toJsonSchema(schema) : schema]),
  );
}

/** Converts a type. Undefined for `TYPE_UNSPECIFIED`. */
function toType(type: unknown): unknown {
  if (Array.isArray(type)) return type.map(toType).filter((each) => each !== undefined);
  if (typeof type !== "string") return type;
  return type === "TYPE_UNSPECIFIED" ? undefined : type.toLowerCase();
}

/** Limit of properties that are put in order. */
const MAX_ORDERED = 1000;

function inOrder(properties: JsonObject, ordering: readonly unknown[]): JsonObject {
  if (ordering.length > MAX_ORDERED) return properties;
  const first = ordering.filter((name) => typeof name === "string" && Object.hasOwn(properties, name)) as string[];
  return { ...Object.fromEntries(first.map((name) => [name, properties[name]])), ...properties };
}

/** A schema that null satisfies too. */
function orNull(schema: Readonly<Record<string, unknown>>): JsonObject {
  const { type, enum: values, anyOf } = schema;
  if (typeof type === "string") {
    const orNullValue =
      Array.isArray(values) && !values.includes(null) ? { enum: [...(values as unknown[]), null] } : {};
    return { ...schema, type: [type, "null"], ...orNullValue };
  }
  return Array.isArray(anyOf) ? { ...schema, anyOf: [...(anyOf as unknown[]), { type: "null" }] } : schema;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
