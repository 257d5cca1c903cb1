import type { BodyText } from "../../core/provider.ts";
import { type Json } from "./json.ts";

/** Escaped letters, digits and `_`. Field names consist of these, and a text search for a name would miss an escaped one. */
const HIDDEN_NAME = /\\u00(?:3\d|[46][1-9a-f]|[57][\da]|5f)/i;

/**
 * The text of a body in which only fields of the outermost object are replaced, removed or added; the rest keeps the caller's bytes.
 * `own`: the value to write; fields that it shares with the source's value are unchanged. Undefined for a text with escaped names.
 */
export function spliced(own: Json, { text, json, outermost }: BodyText): string | undefined {
  // The search for a fixed text is faster, and finds nothing in most texts.
  if (text.includes("\\u00") && HIDDEN_NAME.test(text)) return undefined;
  const written = new Set<string>();
  const fields = new Fields(text);
  // Positions alternate: a bracket or a comma, then a colon.
  for (let at = 0; at + 2 < outermost.length; at += 2) {
    const start = outermost[at]! + 1;
    const value = outermost[at + 1]! + 1;
    const end = outermost[at + 2]!;
    const key = readKey(text, start, value - 1);
    if (!Object.hasOwn(own, key) || own[key] === undefined) continue;
    written.add(key);
    if (own[key] === json[key]) fields.keep(start, end);
    else {
      const first = skipBlanks(text, value, 1);
      const last = skipBlanks(text, end - 1, -1);
      fields.add(text.slice(start, first) + JSON.stringify(own[key]) + text.slice(last + 1, end));
    }
  }
  for (const key in own)
    if (own[key] !== undefined && !written.has(key)) fields.add(`${JSON.stringify(key)}:${JSON.stringify(own[key])}`);
  return `{${fields.join()}${text.slice(outermost.at(-1))}`;
}

/** Joins fields of an object. Neighbouring kept fields are copied as one piece of the text. */
class Fields {
  readonly #text: string;
  readonly #pieces: string[] = [];
  /** Range of the last piece, which the next field may extend. */
  #start = 0;
  #end = -1;

  constructor(text: string) {
    this.#text = text;
  }

  /** Adds a field of the text. */
  keep(start: number, end: number): void {
    if (start !== this.#end + 1) {
      this.#close();
      this.#start = start;
    }
    this.#end = end;
  }

  add(field: string): void {
    this.#close();
    this.#pieces.push(field);
  }

  join(): string {
    this.#close();
    return this.#pieces.join(",");
  }

  #close(): void {
    if (this.#end >= 0) this.#pieces.push(this.#text.slice(this.#start, this.#end));
    this.#end = -1;
  }
}

/** The first position from `from`, in the direction of `step`, that is not a blank. */
function skipBlanks(text: string, from: number, step: 1 | -1): number {
  let at = from;
  while (text.charCodeAt(at) <= SPACE) at += step;
  return at;
}

const SPACE = 0x20;

/** The name of a field, with its quotes and blanks around them between two positions. */
function readKey(text: string, start: number, end: number): string {
  const name = text.slice(start + 1, end - 1);
  const isPlain = text.charCodeAt(start) === QUOTE && text.charCodeAt(end - 1) === QUOTE && !name.includes("\\");
  return isPlain ? name : (JSON.parse(text.slice(start, end)) as string);
}

const QUOTE = 0x22;
