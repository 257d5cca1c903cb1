import type { z } from "zod";
import { Failure, type FieldViolation } from "../core/failure.ts";
import { MAX_VIOLATIONS } from "../core/validate.ts";

/**
 * Creates a reader of requests of one shape. The reader returns a request unchanged, with unknown keys. It throws `invalid_request`
 * with the first MAX_VIOLATIONS fields of a wrong type, in time proportional to the request's size. `name`: a request's name in messages.
 */
export function shapeReader<T extends z.ZodType>(schema: T, name: string): (json: unknown) => z.output<T> {
  const isRequest = toCheck(schema);
  return (json) => {
    if (isRequest(json, undefined)) return json as z.output<T>;
    const findings = new Findings();
    isRequest(json, findings);
    throw findings.toFailure(name);
  };
}

/**
 * Whether a value has a shape. Violations are noted in `findings`, up to its limit. The schema's own parser would look for each of forty
 * keys in every request, copy the whole request, and create a tree of issues for each wrong element: 190,000 numbers in place of parts
 * took it 0.6 s. A check visits only the keys that are present.
 */
type Check = (value: unknown, findings: Findings | undefined) => boolean;

/** Collects the violations of a request, with paths in the caller's format. */
class Findings {
  readonly list: FieldViolation[] = [];
  readonly #path: (string | number)[];
  /** Depth of the first violation. A violation that concerns the inside of a value counts as one level below the value. */
  depth = 0;

  constructor(path: readonly (string | number)[] = []) {
    this.#path = [...path];
  }

  /** Whether MAX_VIOLATIONS is reached, so that checking can stop. */
  get full(): boolean {
    return this.list.length >= MAX_VIOLATIONS;
  }

  add(description: string, { inside = false } = {}): void {
    if (this.list.length === 0) this.depth = this.#path.length + (inside ? 1 : 0);
    if (!this.full) this.list.push({ field: toPath(this.#path), description });
  }

  addAll({ list, depth }: Findings): void {
    if (this.list.length === 0) this.depth = depth;
    this.list.push(...list.slice(0, MAX_VIOLATIONS - this.list.length));
  }

  /** Checks a value below a key or an index. */
  below(key: string | number, value: unknown, check: Check): boolean {
    this.#path.push(key);
    const isRight = check(value, this);
    this.#path.pop();
    return isRight;
  }

  /** Empty findings for the same path, to try another schema. */
  fork(): Findings {
    return new Findings(this.#path);
  }

  toFailure(name: string): Failure {
    const [{ field, description } = { field: "", description: `is not ${name}` }] = this.list;
    const message = field === "" ? `The request body ${description}.` : `${field}: ${description}.`;
    return new Failure("invalid_request", message, { violations: this.list.filter((each) => each.field !== "") });
  }
}

/** The check of a leaf. `description`: what the value must be, for messages. */
function leaf(isRight: (value: unknown) => boolean, description: string): Check {
  return (value, findings) => {
    if (isRight(value)) return true;
    findings?.add(value === undefined ? "is required" : `must be ${description}`);
    return false;
  };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The check of an integer. Integers beyond the safe ones are reported as out of range. */
const isInteger: Check = (value, findings) => {
  if (Number.isSafeInteger(value)) return true;
  if (Number.isInteger(value)) findings?.add("is out of range");
  else findings?.add(value === undefined ? "is required" : "must be a whole number");
  return false;
};

const isAnObject = leaf(isObject, "an object");
const isAList = leaf(Array.isArray, "a list");

/** Checks that accept more than their schema. */
const OWN_CHECKS = new WeakMap<z.core.$ZodType, Check>();

/**
 * A union of objects by `type` that also accepts objects of other types, which the reader of the request handles. `kinds`: schemas by
 * type. `typeOf`: returns the type of an object, which may lack the key.
 */
export function openUnion<T extends z.ZodType>(
  schema: T,
  kinds: Readonly<Record<string, z.ZodType>>,
  typeOf: (value: Readonly<Record<string, unknown>>) => unknown = ({ type }) => type,
): T {
  const checks = new Map(Object.entries(kinds).map(([kind, each]) => [kind, toCheck(each)]));
  const isType = leaf((value) => typeof value === "string", "text");
  OWN_CHECKS.set(schema, (value, findings) => {
    if (!isObject(value)) return isAnObject(value, findings);
    const type = typeOf(value);
    if (typeof type === "string") return checks.get(type)?.(value, findings) ?? true;
    findings?.below("type", type, isType);
    return false;
  });
  return schema;
}

/** Creates the check for a schema. Throws for kinds of schemas that requests do not have. */
function toCheck(schema: z.core.$ZodType): Check {
  const own = OWN_CHECKS.get(schema);
  if (own !== undefined) return own;
  const { def } = (schema as z.core.$ZodTypes)._zod;
  switch (def.type) {
    case "string":
      return leaf((value) => typeof value === "string", "text");
    case "number":
      return "format" in def ? isInteger : leaf(Number.isFinite, "a number");
    case "boolean":
      return leaf((value) => typeof value === "boolean", "true or false");
    case "literal":
      return oneOf(def.values);
    case "enum":
      return oneOf(Object.values(def.entries));
    case "unknown":
      return () => true;
    case "optional":
    case "nullable": {
      const check = toCheck(def.innerType);
      const absent = def.type === "optional" ? undefined : null;
      return (value, findings) => value === absent || check(value, findings);
    }
    case "array":
      return listOf(toCheck(def.element), maxLengthOf(def.checks));
    case "record":
      return recordOf(toCheck(def.valueType));
    case "object":
      return objectOf(def.shape);
    case "union":
      return "discriminator" in def
        ? byDiscriminator(def.discriminator as string, def.options)
        : (unionWithOthers(def.options) ?? anyOf(def.options.map(toCheck)));
    default:
      throw new TypeError(`a request has no place for the schema of ${def.type}`);
  }
}

function oneOf(values: readonly unknown[]): Check {
  const known = new Set(values);
  const description = `must be ${listed(values.map(String))}`;
  return (value, findings) => {
    if (known.has(value)) return true;
    findings?.add(description);
    return false;
  };
}

function maxLengthOf(checks: readonly z.core.$ZodCheck[] | undefined): number {
  const lengths = (checks ?? []).map(({ _zod: { def } }) => {
    if (def.check !== "max_length") throw new TypeError(`a list in a request has no place for ${def.check}`);
    return (def as z.core.$ZodCheckMaxLengthDef).maximum;
  });
  return Math.min(Number.POSITIVE_INFINITY, ...lengths);
}

function listOf(check: Check, maxLength: number): Check {
  return (value, findings) => {
    if (!Array.isArray(value)) return isAList(value, findings);
    if (value.length > maxLength) {
      findings?.add(`must hold at most ${maxLength} entries`, { inside: true });
      return false;
    }
    let isRight = true;
    for (let at = 0; at < value.length; at++) {
      if (findings === undefined ? check(value[at], undefined) : findings.below(at, value[at], check)) continue;
      isRight = false;
      if (findings === undefined || findings.full) return false;
    }
    return isRight;
  };
}

function recordOf(check: Check): Check {
  return (value, findings) => {
    if (!isObject(value)) return isAnObject(value, findings);
    let isRight = true;
    for (const key in value) {
      if (findings === undefined ? check(value[key], undefined) : findings.below(key, value[key], check)) continue;
      isRight = false;
      if (findings === undefined || findings.full) return false;
    }
    return isRight;
  };
}

/** Folds a name: equal for names that case-insensitive parsers, such as Go's, treat as the same. For them `ſ` is an `s`. */
function toFolded(name: string): string {
  return name.toUpperCase().toLowerCase();
}

/**
 * Finds the known key for which a server might take an unknown one. A caller's own body is sent with its unknown keys, and `Model` beside
 * `model` could select another model than the checked one.
 */
function likenessOf(shape: z.core.$ZodShape): (key: string) => string | undefined {
  const names = new Map(Object.keys(shape).map((name) => [toFolded(name), name]));
  const longest = Math.max(0, ...[...names.keys()].map((name) => name.length));
  return (key) => (key.length > longest ? undefined : names.get(toFolded(key)));
}

/** The check of an object with these keys. Other keys are allowed unless a server might take them for one of these. */
function objectOf(shape: z.core.$ZodShape): Check {
  const checks = new Map(Object.entries(shape).map(([key, schema]) => [key, toCheck(schema)]));
  const required = Object.keys(shape).filter((key) => shape[key]!._zod.optin !== "optional");
  const knownLike = likenessOf(shape);

  const explain = (value: Readonly<Record<string, unknown>>, findings: Findings): boolean => {
    let isRight = true;
    // Iterates over the schema's keys, because the object may have 50,000.
    for (const [key, check] of checks) {
      if (findings.below(key, Object.hasOwn(value, key) ? value[key] : undefined, check)) continue;
      isRight = false;
      if (findings.full) return false;
    }
    for (const key in value) {
      const name = checks.has(key) ? undefined : knownLike(key);
      if (name === undefined) continue;
      isRight = false;
      findings.below(
        key,
        value[key],
        leaf(() => false, `written ${name}, if it is meant`),
      );
      if (findings.full) return false;
    }
    return isRight;
  };

  return (value, findings) => {
    if (!isObject(value)) return isAnObject(value, findings);
    if (findings !== undefined) return explain(value, findings);
    for (const key of required) if (!Object.hasOwn(value, key)) return false;
    for (const key in value) {
      const check = checks.get(key);
      if (check === undefined ? knownLike(key) !== undefined : !check(value[key], undefined)) return false;
    }
    return true;
  };
}

/** The check of a union of known kinds of objects and an object of any other kind; undefined for other unions. */
function unionWithOthers([known, other]: readonly z.core.$ZodType[]): Check | undefined {
  const def = known && (known as z.core.$ZodTypes)._zod.def;
  const isOpen = other !== undefined && (other as z.core.$ZodTypes)._zod.def.type === "object";
  if (!isOpen || def?.type !== "union" || !("discriminator" in def)) return undefined;
  return byDiscriminator(def.discriminator as string, def.options, toCheck(other));
}

/** The check of objects of several kinds, distinguished by the value of one key. `other`: the check of all other kinds. */
function byDiscriminator(key: string, options: readonly z.core.$ZodType[], other?: Check): Check {
  const checks = new Map<unknown, Check>();
  for (const option of options) {
    const { shape } = (option as z.core.$ZodObject)._zod.def;
    for (const value of valuesOf(shape[key]!)) checks.set(value, toCheck(option));
  }
  const isKind = oneOf([...checks.keys()]);
  return (value, findings) => {
    if (!isObject(value)) return isAnObject(value, findings);
    const check = checks.get(Object.hasOwn(value, key) ? value[key] : undefined);
    if (check !== undefined) return check(value, findings);
    if (other !== undefined) return other(value, findings);
    findings?.below(key, value[key], isKind);
    return false;
  };
}

/** The discriminating values of a kind of objects. */
function valuesOf(schema: z.core.$ZodType): readonly unknown[] {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  if (def.type === "optional") return [undefined, ...valuesOf(def.innerType)];
  if (def.type === "nullable") return [null, ...valuesOf(def.innerType)];
  return (def as z.core.$ZodLiteralDef<z.core.util.Literal>).values;
}

/** The check of alternatives. Reports the violations of the alternative that matched deepest; otherwise names all alternatives. */
function anyOf(checks: readonly Check[]): Check {
  return (value, findings) => {
    if (findings === undefined) return checks.some((check) => check(value, undefined));
    const readings: Findings[] = [];
    for (const check of checks) {
      const reading = findings.fork();
      if (check(value, reading)) return true;
      readings.push(reading);
    }
    const furthest = readings.reduce((a, b) => (b.depth > a.depth ? b : a));
    if (value === undefined) findings.add("is required");
    else if (readings.some(({ depth }) => depth < furthest.depth)) findings.addAll(furthest);
    else {
      const shapes = new Set(
        readings.flatMap(({ list }) => list.map((each) => each.description.replace(/^must be /, ""))),
      );
      findings.add(`must be ${listed([...shapes])}`);
    }
    return false;
  };
}

function listed(words: readonly string[]): string {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}

const MAX_KEY_CHARS = 64;

function toPath(path: readonly (string | number)[]): string {
  return path
    .map((key, index) =>
      typeof key === "number" ? `[${key}]` : `${index === 0 ? "" : "."}${key.slice(0, MAX_KEY_CHARS)}`,
    )
    .join("");
}
