/** The parts of JSON that every supported Node has and TypeScript's library does not list yet. */
interface ExactJson {
  parse(text: string, revive: (key: string, value: unknown, context: { readonly source?: string }) => unknown): unknown;
  rawJSON(text: string): object;
  isRawJSON(value: unknown): boolean;
}

const exact = JSON as unknown as ExactJson;

/** A whole number with more digits than a double is sure to keep. */
const LONG_INTEGER = /^-?\d{16,}$/;

/** Whether a text may hold one: most do not, and are parsed without looking at each value. */
const MAY_HOLD_ONE = /\d{16}/;

/**
 * Text parsed as JSON. Whole numbers that a double would change keep their digits: they are opaque until
 * `JSON.stringify` writes them as they were, so that an ID of 19 digits in a tool's arguments survives both ways.
 * Throws what `JSON.parse` throws.
 */
export function parseExactly(text: string): unknown {
  if (!MAY_HOLD_ONE.test(text)) return JSON.parse(text);
  return exact.parse(text, (_, value, { source }) =>
    typeof value === "number" && source !== undefined && LONG_INTEGER.test(source) ? exact.rawJSON(source) : value,
  );
}

/** Whether a parsed value is a number that kept its digits. */
export function isExactNumber(value: unknown): boolean {
  return exact.isRawJSON(value);
}
