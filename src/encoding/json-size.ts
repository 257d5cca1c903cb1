/** How deep a JSON text is nested, and how many keys and values it has at least. */
export interface JsonSize {
  readonly depth: number;
  readonly values: number;
}

/**
 * The most that a request's JSON may hold: 2,000 messages with calls and results are 30,000 keys and values, and 128 tools
 * with schemas of 500 are 64,000. Parsing as many takes some 10 ms of the event loop.
 */
export const MAX_REQUEST_JSON: JsonSize = { depth: 64, values: 100_000 };

/** Nothing that others wrote is parsed when it is nested deeper, wherever it stands. */
export const MAX_PARSED_DEPTH = 128;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * Measures a JSON text without parsing it. Strings are jumped over. Stops as soon as either measure is more than `max`
 * has. To be called before parsing what others wrote: a few megabytes of brackets, or of tiny fields, would hold the
 * event loop for seconds.
 */
export function measureJson(json: string, max: JsonSize): JsonSize {
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
  return { depth, values };
}

/** Whether a JSON text is deeper or has more in it than `max` says. */
export function exceedsJsonSize(json: string, max: JsonSize): boolean {
  const { depth, values } = measureJson(json, max);
  return depth > max.depth || values > max.values;
}

/** Characters of a string that are looked at one by one: a call of `indexOf` costs as much, and most strings end before. */
const SHORT_STRING = 40;

/** The position of the quote that closes the string opened at `from`, or the end. */
function endOfString(json: string, from: number): number {
  const near = Math.min(from + SHORT_STRING, json.length);
  for (let at = from + 1; at < near; at++) {
    const char = json.charCodeAt(at);
    if (char === BACKSLASH) at += 1;
    else if (char === QUOTE) return at;
  }
  for (let at = json.indexOf('"', from + 1); at >= 0; at = json.indexOf('"', at + 1)) {
    let escapes = 0;
    while (json.charCodeAt(at - 1 - escapes) === BACKSLASH) escapes += 1;
    if (escapes % 2 === 0) return at;
  }
  return json.length;
}
