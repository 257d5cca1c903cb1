import { randomUUID } from "node:crypto";
import { endOfString } from "./json-size.ts";

/** Texts up to this length parse within a few milliseconds, whatever their content. */
export const SMALL_CHARS = 16 * 1024;

/** Limit of numbers per text that keep their characters. Each costs ten times as much as an ordinary number. */
export const MAX_KEPT_NUMBERS = 10_000;

/** Functions of `JSON` that every supported Node has and TypeScript's library does not declare yet. */
interface ExactJson {
  rawJSON(text: string): object;
  isRawJSON(value: unknown): boolean;
}

const exact = JSON as unknown as ExactJson;

/**
 * Matches a number that may not survive a round trip: 16 or more characters, an exponent, a trailing zero in a fraction, or
 * negative zero. Also matches within strings. A quick check of small texts, most of which have no match; for large texts, reading
 * character by character is cheaper.
 */
const SUSPECT = /\d[\d.]{15}|\d[eE]|\.\d*0(?!\d)|-0(?![.\d])/;
/** A number with fewer characters survives a round trip, unless it has an exponent or a trailing zero in a fraction, or is -0. */
const SURELY_EXACT_CHARS = 16;

const QUOTE = 0x22;
const PLUS = 0x2b;
const MINUS = 0x2d;
const DOT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const UPPER_E = 0x45;
const LOWER_E = 0x65;

/**
 * Parses JSON text. Numbers that would change (an ID of 19 digits, `1e400`, `1.50`) become opaque objects that `JSON.stringify`
 * writes unchanged, so that they survive in a tool's arguments both ways. `revive` may replace a string. Numbers beyond
 * MAX_KEPT_NUMBERS, or below about a thousand levels, may be rounded. Throws what `JSON.parse` throws.
 */
export function parseExactly(text: string, revive?: (key: string, value: string) => unknown): unknown {
  const first = findInexactNumber(text);
  if (first < 0 && revive === undefined) return JSON.parse(text);
  const kept = new KeptNumbers(revive);
  try {
    const value = kept.restore("", JSON.parse(first < 0 ? text : kept.mark(text, first)));
    // A marked number in place of a key would be accepted as a string, so the original text is parsed for its error.
    if (!kept.areRestored) JSON.parse(text);
    return value;
  } catch {
    // Either the text is nested deeper than `restore` can recurse, which must not make it invalid, or it is invalid, and then the error
    // must be that of the original text.
    return JSON.parse(text);
  }
}

/**
 * The numbers of one text that keep their characters. They are parsed as strings with a mark, and replaced afterwards. A reviver of
 * `JSON.parse` would be called for each value: up to 100,000 in a request and 2,000,000 in a response.
 */
class KeptNumbers {
  /** Random, so that a string in the text cannot begin with it. */
  readonly #mark = randomUUID();
  readonly #revive: ((key: string, value: string) => unknown) | undefined;
  #unrestored = 0;

  constructor(revive: ((key: string, value: string) => unknown) | undefined) {
    this.#revive = revive;
  }

  /** Whether every marked number was restored. Numbers in overwritten values of duplicate keys are not. */
  get areRestored(): boolean {
    return this.#unrestored === 0;
  }

  /** The text with inexact numbers, the first of them at `first`, as marked strings. */
  mark(text: string, first: number): string {
    let marked = "";
    let done = 0;
    for (let at = first; at >= 0 && this.#unrestored < MAX_KEPT_NUMBERS; at = findInexactNumber(text, done)) {
      const end = endOfNumber(text, at);
      marked += `${text.slice(done, at)}"${this.#mark}${text.slice(at, end)}"`;
      done = end;
      this.#unrestored += 1;
    }
    return marked + text.slice(done);
  }

  /** Restores the numbers of a value, in place. Throws when a marked text is no JSON number. */
  restore(key: string, value: unknown): unknown {
    if (typeof value === "string") {
      if (!value.startsWith(this.#mark)) return this.#revive === undefined ? value : this.#revive(key, value);
      this.#unrestored -= 1;
      return exact.rawJSON(value.slice(this.#mark.length));
    }
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) {
      for (let at = 0; at < value.length; at++) {
        const before: unknown = value[at];
        const after = this.restore("", before);
        if (after !== before) value[at] = after;
      }
      return value;
    }
    const fields = value as Record<string, unknown>;
    for (const name of Object.keys(fields)) {
      const before = fields[name];
      const after = this.restore(name, before);
      if (after !== before) fields[name] = after;
    }
    return value;
  }
}

/**
 * Position of the first number, from `from` on, that would not survive a round trip, or -1. Skips strings, because random IDs often
 * look like such a number.
 */
function findInexactNumber(text: string, from = 0): number {
  if (from === 0 && text.length <= SMALL_CHARS && !SUSPECT.test(text)) return -1;
  for (let at = from; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char === QUOTE) at = endOfString(text, at);
    else if (char === MINUS || isDigit(char)) {
      const end = endOfNumber(text, at);
      if (!isExact(text, at, end)) return at;
      at = end - 1;
    }
  }
  return -1;
}

const isDigit = (char: number): boolean => char >= ZERO && char <= NINE;

/** Position after the characters of a number. */
function endOfNumber(text: string, from: number): number {
  let at = from + 1;
  while (isOfNumber(text.charCodeAt(at))) at += 1;
  return at;
}

function isOfNumber(char: number): boolean {
  return isDigit(char) || char === DOT || char === LOWER_E || char === UPPER_E || char === PLUS || char === MINUS;
}

function isExact(text: string, from: number, end: number): boolean {
  if (isSurelyExact(text, from, end)) return true;
  const source = text.slice(from, end);
  return String(Number(source)) === source;
}

/** Whether a number certainly survives a round trip. Reads single characters, for speed: a response may have a million numbers. */
function isSurelyExact(text: string, from: number, end: number): boolean {
  const length = end - from;
  if (length >= SURELY_EXACT_CHARS) return false;
  let hasFraction = false;
  for (let at = from; at < end; at++) {
    const char = text.charCodeAt(at);
    if (char === LOWER_E || char === UPPER_E) return false;
    if (char === DOT) hasFraction = true;
  }
  if (text.charCodeAt(end - 1) !== ZERO) return true;
  return !hasFraction && !(length === 2 && text.charCodeAt(from) === MINUS);
}

/** Whether a parsed value is a number that kept its characters. */
export function isExactNumber(value: unknown): boolean {
  return exact.isRawJSON(value);
}
