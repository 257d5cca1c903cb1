import { Base64 } from "../../encoding/base64.ts";
import { isExactNumber, parseExactly, SMALL_CHARS } from "../../encoding/exact-json.ts";
import { exceedsJsonSize, MAX_RESPONSE_JSON } from "../../encoding/json-size.ts";

/** Whether a response, or an event with its own limits, is too complex to be parsed. */
export function isTooComplex(text: string, max = MAX_RESPONSE_JSON): boolean {
  return text.length > SMALL_CHARS && exceedsJsonSize(text, max);
}

/*
 * Lenient readers of upstream JSON. Only the fields we use are read, and only if they have the expected type. A missing
 * field or one of another type reads as absent, so an unexpected response may be incomplete but never throws here.
 */

/** A JSON object from outside, not validated. */
export type Json = Readonly<Record<string, unknown>>;

/** Whether `value` is a JSON object: no array, no exact number (`isExactNumber`) and no `Base64`. */
export function isObject(value: unknown): value is Json {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  return !isExactNumber(value) && !(value instanceof Base64);
}

/** `value` as an object; an empty one when it is none. */
export function object(value: unknown): Json {
  return isObject(value) ? value : {};
}

/** `value` as an array; an empty one when it is none. */
export function array(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** `value` as a string, including `Base64`; empty when it is none. */
export function string(value: unknown): string {
  if (typeof value === "string") return value;
  return value instanceof Base64 ? value.toString() : "";
}

/** `value` as a number, including an exact number (`isExactNumber`); undefined when it is none. */
export function number(value: unknown): number | undefined {
  if (isExactNumber(value)) return Number(JSON.stringify(value));
  return typeof value === "number" ? value : undefined;
}

/**
 * Longest text of a token with a log probability, several times that of the longest one in a vocabulary: formats write each byte
 * of it as a number.
 */
export const MAX_TOKEN_CHARS = 1024;

/** `value` as a count: a whole number from 0 to 2^31-1, or undefined. */
export function count(value: unknown): number | undefined {
  const given = number(value);
  return given !== undefined && given >= 0 ? Math.min(Math.trunc(given), 0x7fffffff) : undefined;
}

/** A 64-bit number in protobuf's JSON, which is a text. */
const DIGITS = /^\d{1,15}$/;

/** As `count`, for a provider's usage: also accepts a text of digits. */
export function usageCount(value: unknown): number | undefined {
  return count(typeof value === "string" && DIGITS.test(value) ? Number(value) : value);
}

/** A count as the rest of a total; undefined where one of them is missing. */
export function restOf(total: number | undefined, known: number | undefined): number | undefined {
  return total === undefined || known === undefined ? undefined : Math.max(total - known, 0);
}

/** Text parsed as JSON with exact numbers; undefined when it is invalid, or larger than MAX_RESPONSE_JSON. */
export function parsed(text: string): unknown {
  return exceedsJsonSize(text, MAX_RESPONSE_JSON) ? undefined : parseMeasured(text);
}

/** As `parsed`, for a text whose size was checked before: a schema of a valid request. */
export function parseMeasured(text: string): unknown {
  try {
    return parseExactly(text);
  } catch {
    return undefined;
  }
}
