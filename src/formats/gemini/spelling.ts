import type { z } from "zod";
import { invalidField } from "../../core/failure.ts";

/** Corrects a value in place. Returns its replacement, or the value itself. */
type Correct = (value: unknown) => unknown;

/**
 * Creates a function that renames the fields of a request as in its schema, in place. The vendor accepts `system_instruction` for
 * `systemInstruction`, and one object in place of a list of objects. Keys of unknown fields and of the caller's own JSON (schemas,
 * arguments, responses) are not changed. A field in both spellings is refused with `invalid_request`: the provider might read the other
 * one, which could have another price.
 */
export function spellingOf(schema: z.core.$ZodType): Correct {
  return toCorrect(schema) ?? ((value) => value);
}

/** The correction for a schema. Undefined for schemas without fields. */
function toCorrect(schema: z.core.$ZodType): Correct | undefined {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  switch (def.type) {
    case "optional":
    case "nullable":
      return toCorrect(def.innerType);
    case "array":
      return ofList(toCorrect(def.element));
    case "object":
      return ofObject(def.shape);
    default:
      return undefined;
  }
}

function ofList(correct: Correct | undefined): Correct | undefined {
  if (correct === undefined) return undefined;
  return (value) => {
    if (!isList(value)) return isObject(value) ? [correct(value)] : value;
    for (let at = 0; at < value.length; at++) value[at] = correct(value[at]);
    return value;
  };
}

function ofObject(shape: z.core.$ZodShape): Correct {
  const fields = new Map(Object.entries(shape).map(([name, schema]) => [name, toCorrect(schema)]));
  const names = new Map([...fields.keys()].map((name) => [toSnakeCase(name), name]));
  return (value) => {
    if (!isObject(value)) return value;
    for (const key of Object.keys(value)) {
      const name = fields.has(key) ? key : names.get(key);
      if (name === undefined) continue;
      if (name !== key && Object.hasOwn(value, name)) throw invalidField(name, `is given twice, also as ${key}`);
      const correct = fields.get(name);
      if (correct !== undefined || name !== key) value[name] = correct === undefined ? value[key] : correct(value[key]);
      if (name !== key) delete value[key];
    }
    return value;
  };
}

function toSnakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function isList(value: unknown): value is unknown[] {
  return Array.isArray(value);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
