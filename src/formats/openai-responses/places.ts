/** Place of a part in the request: the index of its item, and that of its content part; WHOLE without one. */
export type Place = readonly [item: number, content: number];
/** The content of the item is a text. */
export const WHOLE = -1;
/** Item index of `instructions`. */
export const INSTRUCTIONS = -1;

/** Places of all parts of a conversation, which outlive it: numbers only. */
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

  /** The place of a part; that of the message's first part for one that is not there. */
  of(message: number, part: number): Place {
    const start = this.#starts[message] ?? 0;
    const end = this.#starts[message + 1] ?? this.#pairs.length;
    const at = start + 2 * part < end ? start + 2 * part : start;
    return [this.#pairs[at] ?? 0, this.#pairs[at + 1] ?? WHOLE];
  }
}
