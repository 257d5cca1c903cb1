/** Place of a part in the request: the index of its item, and the index of its content part, or WHOLE. */
export type Place = readonly [item: number, content: number];
/** Index of the content part for an item whose content is a text. */
export const WHOLE = -1;
/** Item index of `instructions`. */
export const INSTRUCTIONS = -1;

/** Places of all parts of a conversation. Only numbers, because they are kept after the conversation is released. */
export class Places {
  readonly #starts: number[] = [];
  readonly #pairs: number[] = [];

  /** Begins a message. */
  begin(): void {
    this.#starts.push(this.#pairs.length);
  }

  /** Adds the place of the next part of the last message. */
  add([item, content]: Place): void {
    this.#pairs.push(item, content);
  }

  /** The place of a part; for a missing part, the place of the message's first part. */
  of(message: number, part: number): Place {
    const start = this.#starts[message] ?? 0;
    const end = this.#starts[message + 1] ?? this.#pairs.length;
    const at = start + 2 * part < end ? start + 2 * part : start;
    return [this.#pairs[at] ?? 0, this.#pairs[at + 1] ?? WHOLE];
  }
}
