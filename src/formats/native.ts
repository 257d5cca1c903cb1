import type { NativeBlock } from "../../gen/parley/v1/message_pb.js";
import { isExactNumber, parseExactly } from "../encoding/exact-json.ts";
import { exceedsJsonSize, MAX_RESPONSE_JSON } from "../encoding/json-size.ts";

export type JsonObject = Readonly<Record<string, unknown>>;

/** A native block of a dialect as the provider wrote it, with the digits of its numbers; undefined for one of another dialect. */
export function readNative(
  { dialect, json }: Pick<NativeBlock, "dialect" | "json">,
  own: string,
): JsonObject | undefined {
  return dialect === own ? readObject(json) : undefined;
}

/** An object from the JSON of an answer; undefined for any other text, and for one beyond the size of a response. */
export function readObject(json: string): JsonObject | undefined {
  if (exceedsJsonSize(json, MAX_RESPONSE_JSON)) return undefined;
  try {
    const value: unknown = parseExactly(json);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isExactNumber(value);
}
