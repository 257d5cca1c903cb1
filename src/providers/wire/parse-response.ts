import { randomUUID } from "node:crypto";
import { Base64 } from "../../encoding/base64.ts";
import { parseExactly } from "../../encoding/exact-json.ts";
import type { JsonSize } from "../../encoding/json-size.ts";
import { isTooComplex } from "./json.ts";
import { tooComplex } from "./response-failure.ts";

/** Minimum length in bytes of a string that is held as `Base64`: shorter pictures cost little to parse. */
const LONG = 64 * 1024;

/** Key of pictures and recordings in every dialect. */
const MEDIA_KEY = "data";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const BYTE_ORDER_MARK = "\ufeff";

/**
 * Parses a whole response as JSON and keeps the digits of numbers. A long base64 string named `data` becomes a `Base64`
 * of the same bytes, so that megabytes of a picture are neither joined, decoded nor parsed. Throws what `JSON.parse`
 * throws, and `upstream_protocol` beyond `max` (default: MAX_RESPONSE_JSON).
 */
export function parseResponse(pieces: readonly Buffer[], max?: JsonSize): unknown {
  const { text, held } = holdLongStrings(pieces);
  if (isTooComplex(text, max)) throw tooComplex();
  if (held.size === 0) return parseExactly(text);
  let found = 0;
  const json = parseExactly(text, (key, value) => {
    const base64 = held.get(value);
    if (base64 === undefined) return value;
    found += 1;
    return key === MEDIA_KEY ? base64 : base64.toString();
  });
  // A held string that is a key, or the value of a duplicate key, is not revived: parse the original text.
  return found === held.size ? json : parseExactly(toText(pieces));
}

/** As `parseResponse`, but numbers become JavaScript numbers, without the search for inexact ones. Throws as `parseResponse`. */
export function parseNumbers(pieces: readonly Buffer[]): unknown {
  const text = toText(pieces);
  if (isTooComplex(text)) throw tooComplex();
  return JSON.parse(text);
}

interface HeldStrings {
  readonly text: string;
  /** The held strings by their placeholders in the text. */
  readonly held: ReadonlyMap<string, Base64>;
}

const NOTHING_HELD: HeldStrings["held"] = new Map();

/**
 * Replaces long base64 strings in a JSON text by placeholders. Base64 between two quotes, the first of them not escaped,
 * is always a whole string: outside of strings a comma, colon or bracket separates any two quotes.
 */
function holdLongStrings(pieces: readonly Buffer[]): HeldStrings {
  if (pieces.length < 2) return { text: toText(pieces), held: NOTHING_HELD };
  const held = new Map<string, Base64>();
  const rest: Buffer[] = [];
  /** Bytes since the last quote. */
  let run: Buffer[] = [];
  let length = 0;
  let isEscaped = true;
  let before = BACKSLASH;
  for (const piece of pieces) {
    const first = piece.indexOf(QUOTE);
    run.push(first < 0 ? piece : piece.subarray(0, first));
    length += run.at(-1)!.length;
    if (first >= 0) {
      const base64 = length < LONG || isEscaped ? undefined : Base64.read(run);
      if (base64 === undefined) rest.push(...run);
      else rest.push(hold(base64, held));
      const last = piece.lastIndexOf(QUOTE);
      rest.push(piece.subarray(first, last + 1));
      isEscaped = (last === 0 ? before : piece[last - 1]) === BACKSLASH;
      run = [piece.subarray(last + 1)];
      length = run[0]!.length;
    }
    before = piece.at(-1) ?? before;
  }
  return { text: toText([...rest, ...run]), held };
}

/** Keeps the string under a random name, which no response can have in it, and returns the name. */
function hold(base64: Base64, held: Map<string, Base64>): Buffer {
  const name = randomUUID();
  held.set(name, base64);
  return Buffer.from(name);
}

function toText(pieces: readonly Buffer[]): string {
  const bytes = pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
  const text = bytes.toString("utf8");
  return text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
}
