/**
 * Who says a text: system, user, assistant or tool; or how an assistant says it: as a refusal (N), as speech (V), as
 * reasoning (R).
 */
export type Speaker = "S" | "U" | "A" | "T" | "N" | "V" | "R";

const MARK = /(?=⟦[SUATNVR]\d+⟧)/u;

/** What a text begins with so that it is distinct from all others, wherever a translation puts it. */
export function mark(speaker: Speaker, number: number): string {
  return `⟦${speaker}${number}⟧`;
}

/** The marked texts in one that they may have been joined into, without what stands before the first of them. */
export function splitMarked(text: string): string[] {
  return text.split(MARK).filter((piece) => piece.startsWith("⟦"));
}

/** The mark of a marked text. */
export function markOf(text: string): string {
  return text.slice(0, text.indexOf("⟧") + 1);
}

/** Who said a marked text. */
export function speakerOf(text: string): Speaker {
  return text.charAt(1) as Speaker;
}

const PIXEL = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

/** A picture that differs from those of other numbers, in bytes behind its end. */
export function pictureOf(number: number): Buffer {
  return Buffer.concat([PIXEL, Buffer.from(`#${number}`)]);
}
