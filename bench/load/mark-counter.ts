import { MARK } from "../upstream/answers.ts";

const MARK_BYTES = Buffer.from(MARK);
const FIRST = MARK_BYTES[0]!;

/** Counts the marks of one answer, however the pieces cut them. */
export class MarkCounter {
  #matched = 0;
  #marks = 0;

  /** So far. */
  get marks(): number {
    return this.#marks;
  }

  push(bytes: Buffer): void {
    for (let at = 0; at < bytes.length; at++) {
      if (this.#matched === 0) {
        at = bytes.indexOf(FIRST, at);
        if (at < 0) return;
        this.#matched = 1;
        continue;
      }
      // The first character does not come again inside the mark, so a mismatch can only begin a new one.
      if (bytes[at] === MARK_BYTES[this.#matched]) this.#matched++;
      else this.#matched = bytes[at] === FIRST ? 1 : 0;
      if (this.#matched < MARK_BYTES.length) continue;
      this.#marks++;
      this.#matched = 0;
    }
  }
}
