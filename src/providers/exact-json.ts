/** The parts of JSON that every supported Node has and TypeScript's library does not list yet. */
interface ExactJson {
  parse(text: string, revive: (key: string, value: unknown, context: { readonly source?: string }) => unknown): unknown;
  rawJSON(text: string): object;
  isRawJSON(value: unknown): boolean;
}

const exact = JSON as unknown as ExactJson;

/**
 * Whether a text may hold a number that would not be written as it was: one with many digits, an exponent, a zero at its
 * end, or the negative zero. Most texts do not, and are parsed without looking at each value.
 */
const MAY_HOLD_ONE = /\d[\d.]{15}|\d[eE]|\.\d*0(?!\d)|-0(?![.\d])/;

/**
 * Text parsed as JSON. Numbers that would come out differently (an ID of 19 digits, `1e400`, `1.50`) keep their
 * characters: they are opaque until `JSON.stringify` writes them as they were, so that they survive in a tool's
 * arguments both ways. `revive` may put something else in place of a string. What is nested a thousand levels and more may
 * come as `JSON.parse` reads it. Throws what `JSON.parse` throws.
 */
export function parseExactly(text: string, revive?: (key: string, value: string) => unknown): unknown {
  if (revive === undefined && !MAY_HOLD_ONE.test(text)) return JSON.parse(text);
  try {
    return exact.parse(text, (key, value, { source }) => {
      if (typeof value === "number" && source !== undefined && source !== String(value)) return exact.rawJSON(source);
      return typeof value === "string" && revive !== undefined ? revive(key, value) : value;
    });
  } catch (reason) {
    if (!(reason instanceof RangeError)) throw reason;
    // Looking at each value takes stack for each level, parsing does not: how much there is must not decide what is JSON.
    return JSON.parse(text);
  }
}

/** Whether a parsed value is a number that kept its characters. */
export function isExactNumber(value: unknown): boolean {
  return exact.isRawJSON(value);
}
