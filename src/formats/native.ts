import type { NativeBlock } from "../../gen/parley/v1/message_pb.js";
import { isExactNumber, parseExactly } from "../encoding/exact-json.ts";
import { exceedsJsonSize, MAX_RESPONSE_JSON } from "../encoding/json-size.ts";

export type JsonObject = Readonly<Record<string, unknown>>;

/** A native block of a dialect in the provider's JSON, with exact numbers; undefined for a block of another dialect. */
export function readNative(
  { dialect, json }: Pick<NativeBlock, "dialect" | "json">,
  own: string,
): JsonObject | undefined {
  return dialect === own ? readObject(json) : undefined;
}

/** A citation or an event of a dialect in the provider's JSON; undefined for another dialect, and without a type. */
export function readTyped(
  block: Pick<NativeBlock, "dialect" | "json">,
  own: string,
): (JsonObject & { readonly type: string }) | undefined {
  const words = readNative(block, own);
  const type = words?.["type"];
  return typeof type === "string" && TYPE.test(type) ? { ...words, type } : undefined;
}

/** A valid type. The type of an event is sent as a separate line. */
const TYPE = /^[A-Za-z0-9_.-]{1,128}$/;

/** An object from the JSON of an answer; undefined for any other text, and for one beyond the size of a response. */
export function readObject(json: string): JsonObject | undefined {
  const value = parsed(json);
  return isObject(value) ? value : undefined;
}

function parsed(json: string): unknown {
  if (exceedsJsonSize(json, MAX_RESPONSE_JSON)) return undefined;
  try {
    return parseExactly(json);
  } catch {
    return undefined;
  }
}

/** Fields of an answer that only its dialect has, by their place. */
export type FurtherFields = Readonly<Record<string, unknown>>;

const NONE: FurtherFields = {};

/**
 * The fields of a dialect in `Choice.provider_details_json`. `place`: the object to which they belong, such as `message`; empty for the
 * answer itself. They must not replace the format's own fields, so write those after them.
 */
export function readFurther(
  details: Readonly<Record<string, string>>,
  { dialect, place = "" }: { readonly dialect: string; readonly place?: string },
): FurtherFields {
  const prefix = place === "" ? `${dialect}.` : `${dialect}.${place}.`;
  let fields: Record<string, unknown> | undefined;
  for (const name in details) {
    const key = name.slice(prefix.length);
    if (!name.startsWith(prefix) || !FIELD.test(key)) continue;
    const value = parsed(details[name]!);
    if (value !== undefined) (fields ??= {})[key] = value;
  }
  return fields ?? NONE;
}

/** The name of a field without a place, which would be separated by a dot. */
const FIELD = /^[A-Za-z][A-Za-z0-9_]{0,63}$/;

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isExactNumber(value);
}
