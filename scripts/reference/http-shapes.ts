import type { Field, Shape, TypePart } from "../../web/docs/reference.ts";
import type { JsonSchema } from "../../src/inbound/http/openapi/components.ts";

/** Bounds that only say how far JSON's or the contract's whole numbers go. */
const UNTOLD = new Set([Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, 0x7fffffff]);

/** A schema of what is written as people read it: its fields, those of inner objects behind dots. */
export function toWrittenShape(name: string, schema: JsonSchema): Shape {
  const anchor = `http-${name}`;
  const fields = fieldsOf(schema, { anchor, path: "" });
  return {
    anchor,
    name,
    text: textOf(schema),
    fields,
    ...(fields.length === 0 && choicesOf(schema).length > 0 && { choices: typeOf(schema) }),
  };
}

/** The same of what is read, where null is everywhere as good as nothing and need not be said. */
export function toReadShape(name: string, schema: JsonSchema): Shape {
  const shape = toWrittenShape(name, schema);
  const withoutNull = (type: readonly TypePart[]): readonly TypePart[] =>
    type.at(-1)?.text === "null" ? type.slice(0, -2) : type;
  const fields = shape.fields.map(({ presence, ...field }): Field => {
    return { ...field, type: withoutNull(field.type), ...(presence !== undefined && { presence: "required" }) };
  });
  return { ...shape, fields };
}

function fieldsOf(schema: JsonSchema, at: { readonly anchor: string; readonly path: string }): Field[] {
  const required = new Set(schema["required"] as readonly string[] | undefined);
  const own = Object.entries(schema.properties ?? {}).flatMap(([key, value]): Field[] => {
    const path = at.path === "" ? key : `${at.path}.${key}`;
    const field: Field = {
      anchor: `${at.anchor}.${path}`,
      name: path,
      type: typeOf(value),
      facts: factsOf(value),
      text: textOf(value),
      ...(required.has(key) && { presence: "always" }),
    };
    return [field, ...fieldsOf(value, { anchor: at.anchor, path })];
  });
  const items = schema.items === undefined ? [] : fieldsOf(schema.items, { ...at, path: `${at.path}[]` });
  const inner = choicesOf(schema).flatMap((each) => fieldsOf(each, at));
  // Of several shapes, a field that all of them have is shown once.
  return [
    ...new Map([...inner, ...items, ...own].toReversed().map((field) => [field.anchor, field])).values(),
  ].toReversed();
}

function choicesOf({ anyOf = [], oneOf = [] }: JsonSchema): readonly JsonSchema[] {
  return [...anyOf, ...oneOf];
}

function textOf(schema: JsonSchema): string {
  return (schema["description"] as string | undefined) ?? "";
}

function typeOf(schema: JsonSchema): TypePart[] {
  const reference = schema["$ref"] as string | undefined;
  if (reference !== undefined) {
    const name = reference.split("/").at(-1)!;
    return [{ text: name, anchor: `http-${name}` }];
  }
  if ("const" in schema) return [{ text: JSON.stringify(schema["const"]) }];
  const choices = choicesOf(schema);
  if (choices.length > 0)
    return choices.map(typeOf).flatMap((type, index) => (index > 0 ? [{ text: " or " }, ...type] : type));
  const names = [schema["type"] ?? "anything"].flat() as string[];
  return names.flatMap((name, index): TypePart[] => {
    const or = index > 0 ? [{ text: " or " }] : [];
    if (name === "array") return [...or, { text: "list of " }, ...typeOf(schema.items ?? {})];
    const values = schema["additionalProperties"] as JsonSchema | undefined;
    const isMap = name === "object" && schema.properties === undefined && typeof values === "object";
    return isMap ? [...or, { text: "map to " }, ...typeOf(values)] : [...or, { text: name }];
  });
}

function factsOf(schema: JsonSchema): string[] {
  const of = (keyword: string): number | undefined => {
    const value = schema[keyword] as number | undefined;
    return value === undefined || UNTOLD.has(value) ? undefined : value;
  };
  const facts: string[] = [];
  const named = [schema, schema.items ?? {}, ...choicesOf(schema)]
    .flatMap((each) => (each["enum"] as readonly (string | null)[] | undefined) ?? [])
    .filter((value) => value !== null);
  if (named.length > 0) facts.push(named.map((value) => `\`${value}\``).join(", "));
  facts.push(...between(of("minimum"), of("maximum"), ""));
  const inner = schema["additionalProperties"] as JsonSchema | undefined;
  if (typeof inner === "object") facts.push(...factsOf(inner).map((fact) => `each ${fact}`));
  facts.push(...between(of("minItems"), of("maxItems"), " entries"));
  facts.push(...between(of("minLength"), of("maxLength"), " characters"));
  facts.push(...between(of("minProperties"), of("maxProperties"), " pairs"));
  if ("default" in schema) facts.push(`default \`${JSON.stringify(schema["default"])}\``);
  return facts;
}

function between(min: number | undefined, max: number | undefined, unit: string): string[] {
  const said = (value: number): string => value.toLocaleString("en");
  if (min !== undefined && max !== undefined) return [`${said(min)} to ${said(max)}${unit}`];
  if (max !== undefined) return [`at most ${said(max)}${unit}`];
  // That a count is not negative goes without saying.
  return min !== undefined && min !== 0 ? [`at least ${said(min)}${unit}`] : [];
}
