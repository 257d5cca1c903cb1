import { isUtf8 } from "node:buffer";
import { Failure } from "../../core/failure.ts";

/** How deep arrays and objects may be nested in a request. */
export const MAX_JSON_DEPTH = 64;
/** How many values and keys a request may have together: far more than 2,000 messages with tools and pictures need. */
export const MAX_JSON_TOKENS = 200_000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Parses a request's body. Throws `invalid_request` saying what is wrong with it. */
export function parseBody(body: Buffer): unknown {
  if (body.length === 0) throw unreadable("is empty; it must be a JSON object");
  if (!isUtf8(body)) throw unreadable("is not valid UTF-8");
  checkJsonSize(body);
  let value: unknown;
  try {
    value = JSON.parse(body.toString("utf8"));
  } catch (reason) {
    throw unreadable(`is not valid JSON${positionOf(reason)}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw unreadable("must be a JSON object");
  return value;
}

/**
 * Throws `invalid_request` for a JSON text that is deeper or has more in it than a request may. To be called before
 * parsing: a few megabytes of brackets, or of tiny fields, would hold the event loop for seconds.
 */
export function checkJsonSize(body: Buffer): void {
  const { depth, tokens } = measureJson(body);
  if (depth > MAX_JSON_DEPTH) throw unreadable(`is nested deeper than ${MAX_JSON_DEPTH} levels`);
  if (tokens > MAX_JSON_TOKENS) throw unreadable(`has more than ${MAX_JSON_TOKENS} keys and values`);
}

function unreadable(what: string): Failure {
  return new Failure("invalid_request", `The request body ${what}.`);
}

/** Where parsing stopped, without repeating any of the body. */
function positionOf(reason: unknown): string {
  const found = /at position (\d+)/.exec(String(reason));
  return found === null ? "" : ` (at character ${found[1]})`;
}

/**
 * How deep a JSON text is nested and how many keys and values it has at least. Strings are jumped over. Stops as soon
 * as either is more than a request may have.
 */
export function measureJson(json: Buffer): { readonly depth: number; readonly tokens: number } {
  let open = 0;
  let depth = 0;
  let tokens = 1;
  for (let at = 0; at < json.length && depth <= MAX_JSON_DEPTH && tokens <= MAX_JSON_TOKENS; at++) {
    switch (json[at]) {
      case QUOTE:
        at = endOfString(json, at);
        break;
      case 0x2c: // ,
      case 0x3a: // :
        tokens += 1;
        break;
      case 0x5b: // [
      case 0x7b: // {
        open += 1;
        if (open > depth) depth = open;
        break;
      case 0x5d: // ]
      case 0x7d: // }
        open -= 1;
        break;
      default:
    }
  }
  return { depth, tokens };
}

/** Strings are looked through byte by byte so far: a call of `indexOf` costs as much, and most strings end before. */
const SHORT_STRING = 40;

/** The position of the quote that closes the string opened at `from`, or the end. */
function endOfString(json: Buffer, from: number): number {
  const near = Math.min(from + SHORT_STRING, json.length);
  for (let at = from + 1; at < near; at++) {
    if (json[at] === BACKSLASH) at += 1;
    else if (json[at] === QUOTE) return at;
  }
  for (let at = json.indexOf(QUOTE, from + 1); at >= 0; at = json.indexOf(QUOTE, at + 1)) {
    let escapes = 0;
    while (json[at - 1 - escapes] === BACKSLASH) escapes += 1;
    if (escapes % 2 === 0) return at;
  }
  return json.length;
}
