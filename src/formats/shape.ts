import type { z } from "zod";
import { Failure, type FieldViolation } from "../core/failure.ts";
import { MAX_VIOLATIONS } from "../core/validate.ts";

/**
 * The reader of requests of one shape; it returns them as they are, with unknown keys. Throws `invalid_request` with the first 20
 * fields of a wrong type, in time proportional to the request's own size. `name`: what a request is, in messages.
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
 * Whether a value has a shape. With `findings`, what is wrong is noted there, as far as there is room. The schema's own
 * parser would look for each of forty keys in every request, copy all of it, and make a tree of issues of each wrong
 * element: 190,000 numbers in place of parts took it 0.6 s. This looks at the keys that are there.
 */
type Check = (value: unknown, findings: Findings | undefined) => boolean;

/** What is wrong with a request: paths in the caller's format, in our words. */
class Findings {
  readonly list: FieldViolation[] = [];
  readonly #path: (string | number)[];
  /** How deep the first violation is; what is wrong with all that is inside a value is below the value. */
  depth = 0;

  constructor(path: readonly (string | number)[] = []) {
    this.#path = [...path];
  }

  /** Whether no more are noted, so that nothing more needs to be looked at. */
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

  /** Looks at what is below a key or an index. */
  below(key: string | number, value: unknown, check: Check): boolean {
    this.#path.push(key);
    const isRight = check(value, this);
    this.#path.pop();
    return isRight;
  }

  /** For another reading of the same place. */
  fork(): Findings {
    return new Findings(this.#path);
  }

  toFailure(name: string): Failure {
    const [{ field, description } = { field: "", description: `is not ${name}` }] = this.list;
    const message = field === "" ? `The request body ${description}.` : `${field}: ${description}.`;
    return new Failure("invalid_request", message, { violations: this.list.filter((each) => each.field !== "") });
  }
}

/** A leaf: `description` says what it must be. */
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

/** What a double cannot count is a whole number too. */
const isInteger: Check = (value, findings) => {
  if (Number.isSafeInteger(value)) return true;
  if (Number.isInteger(value)) findings?.add("is out of range");
  else findings?.add(value === undefined ? "is required" : "must be a whole number");
  return false;
};

const isAnObject = leaf(isObject, "an object");
const isAList = leaf(Array.isArray, "a list");

/** Checks of schemas that let through more than the schema says. */
const OWN_CHECKS = new WeakMap<z.core.$ZodType, Check>();

/**
 * A union of objects told apart by `type`, which lets through objects of other types; the reader of the request decides about them.
 * `kinds`: schemas by type. `typeOf`: the type of an object, which may have no such key.
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

/** The check that a schema means. Throws for kinds of schemas that requests do not have. */
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

/** The same text for names that parsers without regard to case, such as that of Go, take for the same: `ſ` is an `s` for them. */
function toFolded(name: string): string {
  return name.toUpperCase().toLowerCase();
}

/**
 * Finds the key that a server might take an unknown one for. A caller's own body has its unknown keys, and `Model` beside `model` would
 * be another model than the one that was checked.
 */
function likenessOf(shape: z.core.$ZodShape): (key: string) => string | undefined {
  const names = new Map(Object.keys(shape).map((name) => [toFolded(name), name]));
  const longest = Math.max(0, ...[...names.keys()].map((name) => name.length));
  return (key) => (key.length > longest ? undefined : names.get(toFolded(key)));
}

/** An object that has these keys, of which some may be missing, and any others that do not look like these. */
function objectOf(shape: z.core.$ZodShape): Check {
  const checks = new Map(Object.entries(shape).map(([key, schema]) => [key, toCheck(schema)]));
  const required = Object.keys(shape).filter((key) => shape[key]!._zod.optin !== "optional");
  const knownLike = likenessOf(shape);

  const explain = (value: Readonly<Record<string, unknown>>, findings: Findings): boolean => {
    let isRight = true;
    // Not by the keys that are there, of which there may be 50,000.
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

/** The check of a union of known kinds of objects with an object of any other kind; undefined for other unions. */
function unionWithOthers([known, other]: readonly z.core.$ZodType[]): Check | undefined {
  const def = known && (known as z.core.$ZodTypes)._zod.def;
  const isOpen = other !== undefined && (other as z.core.$ZodTypes)._zod.def.type === "object";
  if (!isOpen || def?.type !== "union" || !("discriminator" in def)) return undefined;
  return byDiscriminator(def.discriminator as string, def.options, toCheck(other));
}

/** Objects of several kinds, told apart by the value of one key. `other`: the check of all other kinds. */
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

/** The values that tell a kind of objects apart. */
function valuesOf(schema: z.core.$ZodType): readonly unknown[] {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  if (def.type === "optional") return [undefined, ...valuesOf(def.innerType)];
  if (def.type === "nullable") return [null, ...valuesOf(def.innerType)];
  return (def as z.core.$ZodLiteralDef<z.core.util.Literal>).values;
}

/** Of several shapes, the one that came furthest is the one that was meant; otherwise all of them are named. */
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
