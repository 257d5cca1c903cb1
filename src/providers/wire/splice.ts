import type { BodyText } from "../../core/provider.ts";
import { type Json } from "./json.ts";

/** Escaped letters, digits and `_`, of which the names of fields consist: a search for a name in the text must find each. */
const HIDDEN_NAME = /\\u00(?:3\d|[46][1-9a-f]|[57][\da]|5f)/i;

/**
 * The text of a body in which only fields of the outermost object are replaced, removed or added; the rest has the caller's bytes.
 * `own`: what it has to say, which shares with the source what stays. Undefined for a text with names in escapes.
 */
export function spliced(own: Json, { text, json, outermost }: BodyText): string | undefined {
  if (HIDDEN_NAME.test(text)) return undefined;
  const written = new Set<string>();
  const pieces: string[] = [];
  // A bracket or a comma, a colon, and so on.
  for (let at = 0; at + 2 < outermost.length; at += 2) {
    const [start, value, end] = [outermost[at]! + 1, outermost[at + 1]! + 1, outermost[at + 2]!];
    const key = JSON.parse(text.slice(start, value - 1)) as string;
    if (!Object.hasOwn(own, key) || own[key] === undefined) continue;
    written.add(key);
    if (own[key] === json[key]) pieces.push(text.slice(start, end));
    else {
      const given = text.slice(value, end);
      const [before, after] = [given.length - given.trimStart().length, given.trimEnd().length];
      pieces.push(text.slice(start, value + before) + JSON.stringify(own[key]) + given.slice(after));
    }
  }
  for (const [key, value] of Object.entries(own))
    if (value !== undefined && !written.has(key)) pieces.push(`${JSON.stringify(key)}:${JSON.stringify(value)}`);
  return `{${pieces.join(",")}${text.slice(outermost.at(-1))}`;
}
