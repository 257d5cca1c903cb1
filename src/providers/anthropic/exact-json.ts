import { parsed } from "../lenient.ts";

/** The parts of JSON that every supported Node has and TypeScript's library does not list yet. */
interface ExactJson {
  parse(text: string, revive: (key: string, value: unknown, context: { readonly source?: string }) => unknown): unknown;
  rawJSON(text: string): unknown;
  isRawJSON(value: unknown): boolean;
}

const exact = JSON as unknown as ExactJson;

/** Only a number this long can change its value between text and double. */
const LONG_NUMBER = /\d{16}/;

/**
 * Text parsed as JSON, for writing it out again: long numbers keep their digits, where a double would round them. Such
 * a number is an opaque object until then. Undefined when the text is no JSON.
 */
export function parseExactly(text: string): unknown {
  if (!LONG_NUMBER.test(text)) return parsed(text);
  try {
    return exact.parse(text, (_, value, { source }) =>
      typeof value === "number" && source !== undefined && LONG_NUMBER.test(source) ? exact.rawJSON(source) : value,
    );
  } catch {
    return undefined;
  }
}

/** Whether a parsed value is a JSON object. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !exact.isRawJSON(value);
}
