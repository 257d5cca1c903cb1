import { isObject as isAnyObject } from "../lenient.ts";
import type { JsonObject } from "./wire.ts";

/** The parts of JSON that every supported Node has and TypeScript's library does not list yet. */
interface ExactJson {
  rawJSON(text: string): object;
  isRawJSON(value: unknown): boolean;
}

const exact = JSON as unknown as ExactJson;

/** A whole number with more digits than a double is sure to keep. */
const LONG_INTEGER = /^-?\d{16,}$/;

/** Whether a text may hold one: most do not, and are parsed without looking at each value. */
const MAY_HOLD_ONE = /\d{16}/;

/**
 * Text parsed as JSON, undefined when it is none. Whole numbers that a double would change keep their digits: they are
 * opaque until `JSON.stringify` writes them as they were, so that an ID of 19 digits in a tool's arguments survives
 * both ways.
 */
export function parsedExactly(text: string): unknown {
  try {
    return MAY_HOLD_ONE.test(text) ? JSON.parse(text, keepDigits) : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Whether a parsed value is an object, and neither an array nor a number that kept its digits. */
export function isObject(value: unknown): value is JsonObject {
  return isAnyObject(value) && !exact.isRawJSON(value);
}

function keepDigits(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  const source = context?.source;
  return typeof value === "number" && source !== undefined && LONG_INTEGER.test(source) ? exact.rawJSON(source) : value;
}
