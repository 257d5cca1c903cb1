import { MARK } from "../upstream/answers.ts";

const MARK_BYTES = Buffer.from(MARK);
const FIRST = MARK_BYTES[0]!;
const [CR, LF] = Buffer.from("\r\n") as unknown as [number, number];
/** Ends of lines between two pieces of HTTP's chunked coding: that of the one, and that of the other's size. */
const LINES_BETWEEN = 2;

/**
 * Counts the marks of one answer, however reads cut them, and however a server has cut them into pieces of the chunked coding:
 * one that carries bytes on may do that anywhere.
 */
export class MarkCounter {
  #matched = 0;
  #marks = 0;
  /** Ends of lines that are still to come before the mark goes on. */
  #between = 0;

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
      if (this.#between > 0) {
        if (bytes[at] === LF) this.#between--;
        continue;
      }
      if (bytes[at] === CR) {
        this.#between = LINES_BETWEEN;
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
