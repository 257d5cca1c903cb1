type Schema = Readonly<Record<string, unknown>>;

/**
 * Beyond this depth only required properties are generated, and beyond twice this depth nothing, because schemas may be
 * cyclic.
 */
const MAX_OPTIONAL_DEPTH = 4;

/**
 * Limit of values of an example. For it CHARS characters and ENTRIES entries of a schema that are looked at count as one
 * more: nested lists of a thousand items would have no end, nor objects with many optional properties in them.
 */
const MAX_VALUES = 10_000;
const CHARS = 100;
const ENTRIES = 10;
/** Characters of a text that is read as a number. */
const MAX_DIGITS = 32;
/** Numbers and quoted texts that are read of a message. */
const MAX_STATED = 1_000;

const FORMATS: Readonly<Record<string, string>> = {
  "date-time": "2026-01-15T09:30:00Z",
  date: "2026-01-15",
  time: "09:30:00Z",
  duration: "PT1H",
  email: "someone@example.com",
  hostname: "example.com",
  ipv4: "192.0.2.1",
  ipv6: "2001:db8::1",
  uri: "https://example.com/",
  uuid: "123e4567-e89b-42d3-a456-426614174000",
};

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function readNumber(value: unknown): number | undefined {
  const isDigits = typeof value === "string" && value !== "" && value.length <= MAX_DIGITS;
  const number = isDigits ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) ? number : undefined;
}

function follow(reference: string, root: Schema): Schema {
  let found: unknown = root;
  for (const step of reference.replace(/^#\/?/u, "").split("/").filter(Boolean)) {
    const key = step.replaceAll("~1", "/").replaceAll("~0", "~");
    found = isSchema(found) ? found[key] : undefined;
  }
  return isSchema(found) ? found : {};
}

/** What looking at a schema counts: its keywords, the entries of their lists and objects, and their texts. */
function measure(schema: Schema): number {
  let entries = 0;
  let chars = 0;
  for (const value of Object.values(schema)) {
    entries += 1;
    if (typeof value === "string") chars += value.length;
    else if (Array.isArray(value)) entries += value.length;
    else if (isSchema(value)) entries += Object.keys(value).length;
  }
  return entries / ENTRIES + chars / CHARS;
}

function nameType(schema: Schema): string {
  const named: unknown = Array.isArray(schema["type"])
    ? (schema["type"].find((type) => type !== "null") ?? "null")
    : schema["type"];
  if (typeof named === "string") return named.toLowerCase();
  if (schema["properties"] !== undefined) return "object";
  return schema["items"] !== undefined || schema["prefixItems"] !== undefined ? "array" : "string";
}

/** Generates values for one schema document. `name` is the property name, which appears in generated strings. */
class ExampleMaker {
  readonly root: Schema;
  private readonly numbers: number[];
  private readonly texts: string[];
  private left: number;

  constructor(root: Schema, stated: StatedValues, most: number) {
    this.root = root;
    this.left = most;
    this.numbers = [...stated.numbers];
    this.texts = [...stated.texts];
  }

  make(schema: Schema, name: string, depth: number): unknown {
    this.left -= 1;
    if (depth > 2 * MAX_OPTIONAL_DEPTH || this.left < 0 || !this.hasRoomFor(measure(schema))) return null;
    if (typeof schema["$ref"] === "string") return this.make(follow(schema["$ref"], this.root), name, depth + 1);
    if ("const" in schema) return this.counted(schema["const"]);
    if (Array.isArray(schema["enum"]) && schema["enum"].length > 0) return this.counted(schema["enum"][0]);
    if ("default" in schema) return this.counted(schema["default"]);
    const branches = schema["anyOf"] ?? schema["oneOf"];
    if (Array.isArray(branches)) {
      const branch = branches.find((candidate) => isSchema(candidate) && candidate["type"] !== "null") as
        | Schema
        | undefined;
      const { anyOf: _any, oneOf: _one, ...rest } = schema;
      return this.make({ ...rest, ...branch }, name, depth + 1);
    }
    if (Array.isArray(schema["allOf"])) return this.make(this.merge(schema), name, depth + 1);
    switch (nameType(schema)) {
      case "object":
        return this.makeObject(schema, depth);
      case "array":
        return this.makeArray(schema, name, depth);
      case "integer":
        return this.takeFirst(this.numbers, (number) => isNumberOf(schema, number, 1)) ?? makeNumber(schema, 1);
      case "number":
        return this.takeFirst(this.numbers, (number) => isNumberOf(schema, number)) ?? makeNumber(schema, undefined);
      case "boolean":
        return true;
      case "null":
        return null;
      default:
        return this.counted(this.takeFirst(this.texts, (text) => isStringOf(schema, text)) ?? makeString(schema, name));
    }
  }

  /** Counts the characters of a text, or of a value of the schema. */
  private counted<T>(value: T): T {
    this.left -= (JSON.stringify(value) ?? "").length / CHARS;
    return value;
  }

  /** Counts what is about to be looked at. False when the limit is reached. */
  private hasRoomFor(values: number): boolean {
    this.left -= values;
    return this.left >= 0;
  }

  /** Removes and returns the first stated value that fits. */
  private takeFirst<T>(values: T[], fits: (value: T) => boolean): T | undefined {
    const at = this.hasRoomFor(values.length / ENTRIES) ? values.findIndex(fits) : -1;
    return at < 0 ? undefined : values.splice(at, 1)[0];
  }

  private merge(schema: Schema): Schema {
    const { allOf, ...rest } = schema;
    const merged: Record<string, unknown> = { ...rest };
    const properties = toProperties(rest);
    const required = [...toList(rest["required"])];
    for (const part of toList(allOf).filter(isSchema)) {
      const resolved = typeof part["$ref"] === "string" ? follow(part["$ref"], this.root) : part;
      if (!this.hasRoomFor(measure(part) + measure(resolved))) break;
      Object.assign(properties, toProperties(resolved));
      for (const name of toList(resolved["required"])) required.push(name);
      Object.assign(merged, resolved, { properties, required });
    }
    return merged;
  }

  private makeObject(schema: Schema, depth: number): Record<string, unknown> {
    const required = new Set(toList(schema["required"]));
    const properties = toProperties(schema);
    for (const key of required) if (typeof key === "string") properties[key] ??= {};
    const wanted = Object.entries(properties).filter(([key]) => required.has(key) || depth < MAX_OPTIONAL_DEPTH);
    return Object.fromEntries(
      wanted.map(([key, value]) => [key, this.make(isSchema(value) ? value : {}, key, depth + 1)]),
    );
  }

  private makeArray(schema: Schema, name: string, depth: number): unknown[] {
    const leading = Array.isArray(schema["prefixItems"]) ? schema["prefixItems"].filter(isSchema) : [];
    const most = readNumber(schema["maxItems"]) ?? Infinity;
    const fewest = readNumber(schema["minItems"]) ?? (depth < MAX_OPTIONAL_DEPTH ? 1 : 0);
    const length = Math.min(most, 1000, Math.max(leading.length, fewest));
    const items = isSchema(schema["items"]) ? schema["items"] : {};
    return Array.from({ length }, (_, index) => this.make(leading[index] ?? items, name, depth + 1));
  }
}

function toList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function toProperties(schema: Schema): Record<string, unknown> {
  return isSchema(schema["properties"]) ? { ...schema["properties"] } : {};
}

/** Whether a number satisfies a numeric schema. `step` is the default `multipleOf` for integers. */
function isNumberOf(schema: Schema, number: number, step?: number): boolean {
  const grid = readNumber(schema["multipleOf"]) ?? step;
  return (
    number >= (readNumber(schema["minimum"]) ?? -Infinity) &&
    number <= (readNumber(schema["maximum"]) ?? Infinity) &&
    number > (readNumber(schema["exclusiveMinimum"]) ?? -Infinity) &&
    number < (readNumber(schema["exclusiveMaximum"]) ?? Infinity) &&
    (grid === undefined || Number.isInteger(number / grid))
  );
}

/** Whether a text satisfies a string schema. False for schemas with `format` or `pattern`. */
function isStringOf(schema: Schema, text: string): boolean {
  return (
    schema["format"] === undefined &&
    schema["pattern"] === undefined &&
    text.length >= (readNumber(schema["minLength"]) ?? 0) &&
    text.length <= (readNumber(schema["maxLength"]) ?? Infinity)
  );
}

/** Generates a number. `step` is the default `multipleOf` for integers; undefined for real numbers. */
function makeNumber(schema: Schema, step: number | undefined): number {
  const grid = readNumber(schema["multipleOf"]) ?? step;
  const above = readNumber(schema["exclusiveMinimum"]);
  const below = readNumber(schema["exclusiveMaximum"]);
  const nudge = grid ?? 0.5;
  const least = readNumber(schema["minimum"]) ?? (above === undefined ? undefined : above + nudge);
  const most = readNumber(schema["maximum"]) ?? (below === undefined ? undefined : below - nudge);
  const wish = least ?? Math.min(nudge, most ?? nudge);
  return grid === undefined
    ? wish
    : least === undefined
      ? Math.floor(wish / grid) * grid
      : Math.ceil(wish / grid) * grid;
}

function makeString(schema: Schema, name: string): string {
  const format = typeof schema["format"] === "string" ? FORMATS[schema["format"]] : undefined;
  if (format !== undefined) return format;
  const text = name === "" ? "example" : `example ${name}`;
  const fewest = Math.min(readNumber(schema["minLength"]) ?? 0, 10_000);
  return text.padEnd(fewest, ".").slice(0, readNumber(schema["maxLength"]) ?? undefined);
}

/**
 * Generates a value that satisfies a JSON Schema. Deterministic. Supports types, `enum`, `const`, `default`, required
 * and optional properties, arrays, bounds, formats, references inside the document, the first branch of unions, and
 * Gemini's upper-case type names. Does not support `pattern`, `not` and conditions. Each value of `stated` is used for
 * the first property that it fits. Examples of which there are several at once share the limit of values.
 */
export function makeExample(schema: unknown, stated: StatedValues = NOTHING_STATED, sharers = 1): unknown {
  return isSchema(schema) ? new ExampleMaker(schema, stated, MAX_VALUES / sharers).make(schema, "", 0) : {};
}

/** Values in a message, in order. They take precedence over generated examples. */
interface StatedValues {
  readonly numbers: readonly number[];
  /** Quoted texts. */
  readonly texts: readonly string[];
}

export const NOTHING_STATED: StatedValues = { numbers: [], texts: [] };

/** Matches numbers that are not part of a word, of a name such as `gpt-5`, or of a version. */
const NUMBER = /(?<![\w.]|\w-)-?\d+(?:\.\d+)?(?!\d)(?![\w.]*\w)/gu;

/** Matches quoted text. An apostrophe inside a word is not a quotation mark. */
const QUOTED = /(?<!\w)(?:'([^']+)'|"([^"]+)")(?!\w)|“([^“”]+)”/gu;

/** Reads the numbers and quoted texts of a message: `magic_function(3)` states 3, `named 'Åse'` states Åse. */
export function readStatedValues(message: string): StatedValues {
  const texts = message
    .matchAll(QUOTED)
    .take(MAX_STATED)
    .map(([, single, double, curly]) => single ?? double ?? curly ?? "");
  const numbers = message
    .matchAll(NUMBER)
    .take(MAX_STATED)
    .map(([digits]) => Number(digits));
  return { numbers: [...numbers], texts: [...texts] };
}
