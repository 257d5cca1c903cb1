import { Base64 } from "../../encoding/base64.ts";
import { exceedsJsonSize, MAX_RESPONSE_JSON } from "../../encoding/json-size.ts";

/** Texts up to this length are not measured: they parse within a few milliseconds. */
const SMALL_CHARS = 16 * 1024;

/** Functions of `JSON` that every supported Node has and TypeScript's library does not declare yet. */
interface ExactJson {
  parse(text: string, revive: (key: string, value: unknown, context: { readonly source?: string }) => unknown): unknown;
  rawJSON(text: string): object;
  isRawJSON(value: unknown): boolean;
}

const exact = JSON as unknown as ExactJson;

/**
 * Numbers that may not survive a round trip: 16 or more characters, an exponent, a trailing zero in a fraction, or
 * negative zero. Most texts have none and skip the detailed check.
 */
const SUSPECT = /\d[\d.]{15}|\d[eE]|\.\d*0(?!\d)|-0(?![.\d])/;
/** The whole of such a number where JSON allows one. Also matches inside strings. */
const CANDIDATE = /(?<=^|[:,[\s])-?\d(?:[\d.]{15}[\d.eE+-]*|[\d.]*[eE][\d+-]+|\d*\.\d*0(?!\d)|(?<=-0)(?![.\d]))/g;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * Parses JSON text. Numbers that would change (an ID of 19 digits, `1e400`, `1.50`) keep their characters: they are
 * opaque objects that `JSON.stringify` writes unchanged, so that they survive in a tool's arguments both ways. `revive`
 * may replace a string. Beyond about a thousand levels numbers may be rounded. Throws what `JSON.parse` throws.
 */
export function parseExactly(text: string, revive?: (key: string, value: string) => unknown): unknown {
  if (revive === undefined && !(SUSPECT.test(text) && hasInexactNumber(text))) return JSON.parse(text);
  try {
    return exact.parse(text, (key, value, { source }) => {
      if (typeof value === "number" && source !== undefined && source !== String(value)) return exact.rawJSON(source);
      return typeof value === "string" && revive !== undefined ? revive(key, value) : value;
    });
  } catch (reason) {
    if (!(reason instanceof RangeError)) throw reason;
    // The reviver uses stack for each level, plain parsing does not: the stack size must not decide what is valid.
    return JSON.parse(text);
  }
}

/**
 * Whether the text has a number that would not survive a round trip. A reviver call for each value costs four times as
 * much as parsing, and random IDs often look like such a number, so this check runs first.
 */
function hasInexactNumber(text: string): boolean {
  CANDIDATE.lastIndex = 0;
  let scanned = 0;
  let inString = false;
  for (let found = CANDIDATE.exec(text); found !== null; found = CANDIDATE.exec(text)) {
    if (String(Number(found[0])) === found[0]) continue;
    // Scans for quotes from the previous candidate on, so that each character is visited once.
    for (; scanned < found.index; scanned++) {
      const char = text.charCodeAt(scanned);
      if (char === QUOTE) inString = !inString;
      else if (char === BACKSLASH) scanned += 1;
    }
    if (!inString) return true;
  }
  return false;
}

/** Whether a response or event exceeds MAX_RESPONSE_JSON. */
export function isTooComplex(text: string): boolean {
  return text.length > SMALL_CHARS && exceedsJsonSize(text, MAX_RESPONSE_JSON);
}

/** Whether a parsed value is a number that kept its characters. */
function isExactNumber(value: unknown): boolean {
  return exact.isRawJSON(value);
}

/*
 * Lenient readers of upstream JSON. Only the fields we use are read, and only if they have the expected type. A missing
 * field or one of another type reads as absent, so an unexpected response may be incomplete but never throws here.
 */

/** A JSON object from outside, not validated. */
export type Json = Readonly<Record<string, unknown>>;

/** Whether `value` is an object, and neither an array nor a number or a string that kept its characters. */
export function isObject(value: unknown): value is Json {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  return !isExactNumber(value) && !(value instanceof Base64);
}

/** `value` as an object; an empty one when it is not. */
export function object(value: unknown): Json {
  return isObject(value) ? value : {};
}

/** `value` as an array; an empty one when it is not. */
export function array(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** `value` as a string, also when it kept its characters; empty when it is none. */
export function string(value: unknown): string {
  if (typeof value === "string") return value;
  return value instanceof Base64 ? value.toString() : "";
}

/** `value` as a number, also when it kept its characters; undefined when it is none. */
export function number(value: unknown): number | undefined {
  if (isExactNumber(value)) return Number(JSON.stringify(value));
  return typeof value === "number" ? value : undefined;
}

/** `value` as a count of tokens: a whole number from 0 to 2^31-1, or undefined. */
export function count(value: unknown): number | undefined {
  const given = number(value);
  return given !== undefined && given >= 0 ? Math.min(Math.trunc(given), 0x7fffffff) : undefined;
}

/** Text parsed as JSON, numbers as they are written; undefined when it is none, or larger than MAX_RESPONSE_JSON. */
export function parsed(text: string): unknown {
  if (exceedsJsonSize(text, MAX_RESPONSE_JSON)) return undefined;
  try {
    return parseExactly(text);
  } catch {
    return undefined;
  }
}
