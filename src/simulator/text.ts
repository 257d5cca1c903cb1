/**
 * What the simulator calls a token. A written token is a run of white space, if any, with up to six characters of a
 * word after it: about four characters in English. A streamed answer sends one token per event, so its completion
 * tokens are exactly its content events.
 */
const PIECE = /\s*[^\s]{1,6}|\s+$/gu;

/** Splits an answer into its tokens; joined again they are the text, character for character. */
export function splitTokens(text: string): string[] {
  return text.match(PIECE) ?? [];
}

/** How many tokens a text of a request counts as: one per four UTF-16 units, rounded up, whatever its length costs. */
export function estimateTokens(text: string): number {
  return Math.ceil(text.length / 4);
}

/** The text on one line, cut at a word's end to at most `limit` characters, with an ellipsis where it was cut. */
export function abbreviate(text: string, limit: number): string {
  const line = text
    .slice(0, limit * 4)
    .replace(/\s+/gu, " ")
    .trim();
  if (line.length <= limit) return line;
  const cut = line.slice(0, limit);
  const end = cut.lastIndexOf(" ");
  return `${(end > limit / 2 ? cut.slice(0, end) : cut.replace(/[\uD800-\uDBFF]$/u, "")).trimEnd()}…`;
}

/** Where a text has to end: the earliest stop sequence in it, if any is there. */
export function findStop(text: string, stops: readonly string[]): { at: number; sequence: string } | undefined {
  let first: { at: number; sequence: string } | undefined;
  for (const sequence of stops) {
    const at = sequence === "" ? -1 : text.indexOf(sequence);
    if (at >= 0 && (first === undefined || at < first.at)) first = { at, sequence };
  }
  return first;
}
