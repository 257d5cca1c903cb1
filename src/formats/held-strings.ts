import { randomUUID } from "node:crypto";
import type { Base64 } from "../encoding/base64.ts";

/** JSON as text, or as buffers if it has long strings. */
export type JsonText = string | readonly Buffer[];

/**
 * Keeps long strings out of a JSON text while it is built: they need no escaping, and images of several megabytes are not
 * copied.
 */
export class HeldStrings {
  readonly #held: Base64[] = [];
  /** Random marker that no text can contain by chance. */
  #mark = "";

  /** Stores a string; returns its placeholder. */
  hold(text: Base64): string {
    this.#mark ||= randomUUID();
    return `${this.#mark}-${this.#held.push(text) - 1};`;
  }

  /** Replaces the placeholders in a text by their strings. */
  putBack(text: string): JsonText {
    if (this.#held.length === 0) return text;
    // Odd parts are numbers of strings.
    const parts = text.split(new RegExp(`${this.#mark}-(\\d+);`));
    return parts.flatMap((part, at) => (at % 2 === 0 ? Buffer.from(part) : this.#held[Number(part)]!.pieces));
  }
}
