import { Failure } from "../core/failure.ts";
import { Refusal } from "./answer.ts";

/** Keys and indexes from the body to a value. */
export type Path = readonly (string | number)[];

/** A wrong value, in the words of a format. `value` is undefined for a missing one. */
export interface Flaw {
  readonly field: string;
  readonly description: string;
  readonly value: unknown;
}

/** How a dialect reads a body. */
export interface BodyReader<T> {
  /** Names of fields by the place of their object: `chat`, `chat.tools[].function`. Objects at other places have any. */
  readonly fields: Readonly<Record<string, string>>;
  /** The place of the body. */
  readonly place: string;
  /** The name of a field that may also be spelt otherwise. Default: as it is. */
  readonly spell?: (name: string) => string;
  /** The reader of a format. */
  readonly read: (json: unknown) => T;
  readonly refuseUnknown: (path: Path) => Refusal;
  readonly refuseFlaw: (flaw: Flaw) => Refusal;
}

/** Reads a body with the reader of a format, which is lenient about unknown fields. Throws `Refusal`. */
export function readBody<T>(body: unknown, reader: BodyReader<T>): T {
  const { place, read, refuseUnknown, refuseFlaw } = reader;
  if (typeof body !== "object" || body === null) throw new Refusal(400, "The request body is not a JSON object.");
  const unknown = findUnknown(body, place, reader);
  if (unknown !== undefined) throw refuseUnknown(unknown);
  try {
    return read(body);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const [first] = error.violations;
    throw first === undefined
      ? new Refusal(400, error.message)
      : refuseFlaw({ ...first, value: valueAt(body, first.field) });
  }
}

/** The path of the first unknown field. */
function findUnknown(
  value: unknown,
  place: string,
  reader: Pick<BodyReader<unknown>, "fields" | "spell">,
): Path | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { fields, spell = (name) => name } = reader;
  if (Array.isArray(value)) {
    for (const [index, inner] of value.entries()) {
      const rest = findUnknown(inner, `${place}[]`, reader);
      if (rest !== undefined) return [index, ...rest];
    }
    return undefined;
  }
  const known = fields[place]?.split(" ");
  if (known === undefined) return undefined;
  for (const [key, inner] of Object.entries(value)) {
    const name = spell(key);
    if (!known.includes(name)) return [key];
    const rest = findUnknown(inner, `${place}.${name}`, reader);
    if (rest !== undefined) return [key, ...rest];
  }
  return undefined;
}

/** The value at a path such as `messages[0].content` or `messages.0.content`. */
function valueAt(body: unknown, path: string): unknown {
  return path
    .split(/[.[\]]+/u)
    .filter(Boolean)
    .reduce<unknown>((value, step) => (value as Record<string, unknown> | null | undefined)?.[step], body);
}
