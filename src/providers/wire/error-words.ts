import { string } from "./lenient.ts";
import { cutText, MAX_READ_CHARS } from "./scrub.ts";
import type { ErrorSubject, UpstreamError } from "./status-failure.ts";

/** What a dialect's servers say only in words, first match first. Patterns have bounded quantifiers. */
export type SubjectWords = readonly (readonly [subject: ErrorSubject, words: RegExp])[];

/**
 * An upstream's text, cut to its first 2,000 characters before anything is looked for in it: it may be as long as an
 * answer. Empty when it is no text.
 */
export function readMessage(value: unknown): string {
  return cutText(string(value), MAX_READ_CHARS);
}

/**
 * What an error is about: by its structured fields (`coded`), and only without them by its words. Quoted words do not
 * count, for upstreams quote what callers wrote.
 */
export function tellSubject(
  coded: ErrorSubject | undefined,
  { message, words }: { readonly message: string; readonly words: SubjectWords },
): Pick<UpstreamError, "subject" | "toldBy"> {
  if (coded !== undefined) return { subject: coded, toldBy: "code" };
  const plain = withoutQuotes(message);
  return { subject: words.find(([, pattern]) => pattern.test(plain))?.[0], toldBy: "words" };
}

/** A quotation ends with its mark, or, in a text that was cut, with the text. An apostrophe inside a word is none. */
const QUOTED = /"(?:\\.|[^"])*?(?:"|$)|`[^`]*(?:`|$)|“[^”]*(?:”|$)|(?<!\w)'.*?(?:'(?!\w)|$)/gs;

/** The text with an ellipsis for each quotation. */
export function withoutQuotes(text: string): string {
  return text.replace(QUOTED, "…");
}
