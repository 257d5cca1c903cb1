import { string } from "./json.ts";
import { cutText, MAX_READ_CHARS } from "./scrub.ts";
import type { ErrorSubject, UpstreamError } from "./status-failure.ts";

/** Error subjects that a dialect's servers state only in text; the first match wins. Patterns have bounded quantifiers. */
export type SubjectWords = readonly (readonly [subject: ErrorSubject, words: RegExp])[];

/**
 * Returns an upstream's text cut to MAX_READ_CHARS before any pattern is applied, because it may be as long as a
 * response. Empty if it is not a string.
 */
export function readMessage(value: unknown): string {
  return cutText(string(value), MAX_READ_CHARS);
}

/**
 * Determines an error's subject: from structured fields (`coded`), otherwise from its text. Quoted text is ignored,
 * because upstreams quote the caller's input.
 */
export function tellSubject(
  coded: ErrorSubject | undefined,
  { message, words }: { readonly message: string; readonly words: SubjectWords },
): Pick<UpstreamError, "subject" | "toldBy"> {
  if (coded !== undefined) return { subject: coded, toldBy: "code" };
  const plain = withoutQuotes(message);
  return { subject: words.find(([, pattern]) => pattern.test(plain))?.[0], toldBy: "words" };
}

/** A quotation ends at its closing mark, or at the end of a cut text. An apostrophe inside a word does not count. */
const QUOTED = /"(?:\\.|[^"])*?(?:"|$)|`[^`]*(?:`|$)|“[^”]*(?:”|$)|(?<!\w)'.*?(?:'(?!\w)|$)/gs;

/** Replaces each quotation by an ellipsis. */
function withoutQuotes(text: string): string {
  return text.replace(QUOTED, "…");
}
