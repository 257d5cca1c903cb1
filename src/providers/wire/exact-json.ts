import { exceedsJsonSize, type JsonSize, MAX_PARSED_DEPTH } from "../../encoding/json-size.ts";

/**
 * The most that is parsed of one answer, one event or one tool's arguments: 128 levels hold 64 of a tool's arguments, and
 * 2,000,000 keys and values 6,000 tokens with the probabilities of 20 others each. Parsing as many takes a quarter of a
 * second.
 */
export const MAX_RESPONSE_JSON: JsonSize = { depth: MAX_PARSED_DEPTH, values: 2_000_000 };

/** Shorter answers and events are not measured: whatever they hold is parsed within a few milliseconds. */
const SMALL_CHARS = 16 * 1024;

/** The parts of JSON that every supported Node has and TypeScript's library does not list yet. */
interface ExactJson {
  parse(text: string, revive: (key: string, value: unknown, context: { readonly source?: string }) => unknown): unknown;
  rawJSON(text: string): object;
  isRawJSON(value: unknown): boolean;
}

const exact = JSON as unknown as ExactJson;

/**
 * Characters of a number that may be written otherwise than they were: 16 or more, an exponent, a zero at the end of a
 * fraction, or the negative zero. Most texts have none, and are not looked at further.
 */
const SUSPECT = /\d[\d.]{15}|\d[eE]|\.\d*0(?!\d)|-0(?![.\d])/;
/** Such a number in whole, at a place where JSON may have one. Also matches inside strings. */
const CANDIDATE = /(?<=^|[:,[\s])-?\d(?:[\d.]{15}[\d.eE+-]*|[\d.]*[eE][\d+-]+|\d*\.\d*0(?!\d)|(?<=-0)(?![.\d]))/g;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * Text parsed as JSON. Numbers that would come out differently (an ID of 19 digits, `1e400`, `1.50`) keep their
 * characters: they are opaque until `JSON.stringify` writes them as they were, so that they survive in a tool's
 * arguments both ways. `revive` may put something else in place of a string. What is nested a thousand levels and more may
 * come as `JSON.parse` reads it. Throws what `JSON.parse` throws.
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
    // Looking at each value takes stack for each level, parsing does not: how much there is must not decide what is JSON.
    return JSON.parse(text);
  }
}

/**
 * Whether a number of the text would be written otherwise than it was. Calling back for each value of a stream's events
 * costs four times as much as parsing them, and IDs of random digits often look like such a number.
 */
function hasInexactNumber(text: string): boolean {
  CANDIDATE.lastIndex = 0;
  let scanned = 0;
  let inString = false;
  for (let found = CANDIDATE.exec(text); found !== null; found = CANDIDATE.exec(text)) {
    if (String(Number(found[0])) === found[0]) continue;
    // Quotes are counted once, from where the last such number stood.
    for (; scanned < found.index; scanned++) {
      const char = text.charCodeAt(scanned);
      if (char === QUOTE) inString = !inString;
      else if (char === BACKSLASH) scanned += 1;
    }
    if (!inString) return true;
  }
  return false;
}

/** Whether an answer or an event is too deep, or has too much in it, to be parsed. */
export function isTooComplex(text: string): boolean {
  return text.length > SMALL_CHARS && exceedsJsonSize(text, MAX_RESPONSE_JSON);
}

/** Whether a parsed value is a number that kept its characters. */
export function isExactNumber(value: unknown): boolean {
  return exact.isRawJSON(value);
}
