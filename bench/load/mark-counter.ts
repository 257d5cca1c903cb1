import { MARK } from "../upstream/answers.ts";

const MARK_BYTES = Buffer.from(MARK);
const FIRST = MARK_BYTES[0]!;
const [CR, LF] = Buffer.from("\r\n") as unknown as [number, number];
/** Line ends between two chunks of HTTP's chunked coding: after the data, and after the next size. */
const LINES_BETWEEN = 2;

/**
 * Counts the marks of one answer, across boundaries of reads and of chunks: a server that forwards bytes may split them
 * anywhere.
 */
export class MarkCounter {
  #matched = 0;
  #marks = 0;
  /** Line ends expected before the mark continues. */
  #between = 0;

  /** Marks counted so far. */
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
      if (this.#between > 0) {
        if (bytes[at] === LF) this.#between--;
        continue;
      }
      if (bytes[at] === CR) {
        this.#between = LINES_BETWEEN;
        continue;
      }
      // The first character is unique within the mark, so a mismatch can only start a new one.
      if (bytes[at] === MARK_BYTES[this.#matched]) this.#matched++;
      else this.#matched = bytes[at] === FIRST ? 1 : 0;
      if (this.#matched < MARK_BYTES.length) continue;
      this.#marks++;
      this.#matched = 0;
    }
  }
}
