import { hideKeys } from "../encoding/hide-keys.ts";
import { ownCopy } from "../encoding/own-copy.ts";
import { MAX_NAME_CHARS } from "./attribution.ts";
import { invalidField } from "./failure.ts";

/** An end user, session or agent as it is stored; undefined when nothing is left. */
export function toName(text: string | undefined): string | undefined {
  return text === undefined ? undefined : toText(text, MAX_NAME_CHARS);
}

/** A name as calls have it, from a field. Throws `invalid_request` for one that no call can have. */
export function readName(field: string, text: string): string {
  const kept = toName(text);
  if (kept === text) return text;
  throw invalidField(field, kept === undefined ? "is empty" : `is stored as ${JSON.stringify(kept)}; write that`);
}

/** Most texts: nothing to change. */
const PLAIN = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;

/** Characters of a text that are read. */
export const MAX_READ_CHARS = 1_000;

/** Shortened, without control characters and API keys; undefined when nothing is left. */
export function toText(text: string, maxChars: number): string | undefined {
  const isLong = text.length > MAX_READ_CHARS;
  const read = isLong ? text.slice(0, MAX_READ_CHARS) : text;
  const shown = hideKeys(read);
  if (shown.length <= maxChars && PLAIN.test(shown)) return shown;
  // Such a character within a key would hide its rest from the search.
  const clean = hideKeys(read.replaceAll(/[\p{Cc}\p{Bidi_Control}]/gu, ""))
    .slice(0, maxChars)
    .toWellFormed()
    .trim();
  // A slice would keep all of a long text in memory.
  return clean === "" ? undefined : ownCopy(clean);
}
