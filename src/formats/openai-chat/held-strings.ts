import { randomUUID } from "node:crypto";
import type { Base64 } from "../../encoding/base64.ts";

/** JSON: a text, or where it has long strings, its bytes in pieces. */
export type JsonText = string | readonly Buffer[];

/**
 * Long strings of one JSON text that are kept out of it while it is made: they need no escaping, and several megabytes
 * of a picture are not copied.
 */
export class HeldStrings {
  readonly #held: Base64[] = [];
  /** Nobody can have guessed it. */
  #mark = "";

  /** What stands for the string until `putBack`. */
  hold(base64: Base64): string {
    this.#mark ||= randomUUID();
    return `${this.#mark}-${this.#held.push(base64) - 1};`;
  }

  /** The text with the strings in their places, each exactly once. */
  putBack(text: string): JsonText {
    if (this.#held.length === 0) return text;
    // Every other one is the number of a string.
    const parts = text.split(new RegExp(`${this.#mark}-(\\d+);`));
    return parts.flatMap((part, at) => (at % 2 === 0 ? Buffer.from(part) : this.#held[Number(part)]!.pieces));
  }
}
