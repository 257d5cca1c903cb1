import { Base64 } from "./base64.ts";

/** Nesting depth of a JSON text, and the number of its keys and values. Arrays and objects count twice. */
export interface JsonSize {
  readonly depth: number;
  readonly values: number;
}

/**
 * Limits of a request's JSON: 2,000 messages with calls and results have 30,000 keys and values, and 128 tools with schemas of 500
 * have 64,000. Parsing 100,000 takes some 10 ms of the event loop.
 */
export const MAX_REQUEST_JSON: JsonSize = { depth: 64, values: 100_000 };

/** Depth limit of all parsed JSON from outside. */
export const MAX_PARSED_DEPTH = 128;

/**
 * Limits of one parsed response or tool argument. 128 levels leave 64 for a tool's arguments. 2,000,000 keys and
 * values hold 6,000 tokens with 20 log probabilities each and take a quarter of a second to parse.
 */
export const MAX_RESPONSE_JSON: JsonSize = { depth: MAX_PARSED_DEPTH, values: 2_000_000 };

/** Limits of one event of a stream, which holds a token, some calls or a picture, and is sent on in one turn of the event loop. */
export const MAX_EVENT_JSON: JsonSize = { depth: MAX_PARSED_DEPTH, values: 100_000 };

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * Measures a JSON text without parsing it; strings are skipped. Stops when a measure exceeds `max`. Call it before parsing JSON from
 * outside: a few megabytes of brackets or tiny fields would block the event loop for seconds. `outermost` gets the positions of the
 * brackets, colons and commas of the outermost object.
 */
export function measureJson(json: string, max: JsonSize, outermost?: number[]): JsonSize {
  let open = 0;
  let depth = 0;
  let values = 1;
  for (let at = 0; at < json.length && depth <= max.depth && values <= max.values; at++) {
    switch (json.charCodeAt(at)) {
      case QUOTE:
        at = endOfString(json, at);
        break;
      case 0x2c: // ,
      case 0x3a: // :
        values += 1;
        if (open === 1) outermost?.push(at);
        break;
      case 0x5b: // [
      case 0x7b: // {
        // An array or object costs more than a number, and brackets need no comma between them.
        values += 1;
        open += 1;
        if (open === 1) outermost?.push(at);
        if (open > depth) depth = open;
        break;
      case 0x5d: // ]
      case 0x7d: // }
        open -= 1;
        if (open === 0) outermost?.push(at);
        break;
      default:
    }
  }
  return { depth, values };
}

/**
 * Number of keys and values of parsed JSON, equal to that of `measureJson` for its text, unless an object in the text has two fields
 * of the same name: only the last one is parsed.
 */
export function countValues(value: unknown): number {
  if (typeof value !== "object" || value === null) return 1;
  let entries = 0;
  let values = 2;
  if (Array.isArray(value)) {
    entries = value.length;
    for (const each of value as unknown[]) if (isContainer(each)) values += countValues(each) - 1;
  } else {
    for (const key in value) {
      entries += 1;
      const each = (value as Readonly<Record<string, unknown>>)[key];
      if (isContainer(each)) values += countValues(each) - 1;
    }
    values += entries;
  }
  return entries === 0 ? values : values + entries - 1;
}

const isContainer = (value: unknown): value is object => typeof value === "object" && value !== null;

/** Characters that a key or value counts beside its text: an empty object takes some 60 bytes. */
const ENTRY_CHARS = 8;

/** Size of parsed JSON that is kept in memory: the characters of its keys and texts, and ENTRY_CHARS for each key and value. */
export function sizeOfKept(value: unknown): number {
  if (typeof value === "string" || value instanceof Base64) return ENTRY_CHARS + value.length;
  let chars = ENTRY_CHARS;
  if (!isContainer(value)) return chars;
  if (Array.isArray(value)) for (const each of value as unknown[]) chars += sizeOfKept(each);
  else for (const key in value) chars += ENTRY_CHARS + key.length + sizeOfKept((value as Record<string, unknown>)[key]);
  return chars;
}

/** Whether a JSON text exceeds `max`. */
export function exceedsJsonSize(json: string, max: JsonSize): boolean {
  if (json.length < Math.min(max.depth, max.values)) return false;
  const { depth, values } = measureJson(json, max);
  return depth > max.depth || values > max.values;
}

/** Characters that are checked one by one before `indexOf` is called. Most strings are shorter, and a call costs as much. */
const SHORT_STRING = 40;

/** Position of the quote that closes the string opened at `from`, or of the end. */
export function endOfString(json: string, from: number): number {
  for (let at = from + 1; at < json.length; at++) {
    const near = Math.min(at + SHORT_STRING, json.length);
    for (; at < near; at++) {
      const char = json.charCodeAt(at);
      if (char === BACKSLASH) at += 1;
      else if (char === QUOTE) return at;
    }
    at = json.indexOf('"', at);
    if (at < 0) break;
    let escapes = 0;
    while (json.charCodeAt(at - 1 - escapes) === BACKSLASH) escapes += 1;
    if (escapes % 2 === 0) return at;
  }
  return json.length;
}
