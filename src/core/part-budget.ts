import { Failure } from "./failure.ts";
import { MAX_PARTS } from "./validate.ts";

/** The failure of an answer with more than MAX_PARTS parts. */
export function tooManyParts(): Failure {
  return new Failure("upstream_protocol", `The provider's answer has more than ${MAX_PARTS} parts.`);
}

/**
 * Limit of keys and values in the arguments and native blocks of an answer, which formats parse: a model that writes 100,000 tokens of
 * arguments stays below it.
 */
const MAX_ANSWER_VALUES = 200_000;

/** Limit of the fields of an answer that the contract does not have, by `sizeOfKept`: they are kept, and written at the end of their part. */
const MAX_FURTHER_CHARS = 1024 * 1024;

/** Limit of the log probabilities that wait for their content: in a whole answer those of a choice come first. */
const MAX_HELD_LOGPROBS = 200_000;

/** Limit of an answer's native events, which the contract has no message for, in UTF-16 units of their JSON. */
const MAX_EVENT_CHARS = 1024 * 1024;
/** Units that an event counts in addition to its JSON. */
const EVENT_CHARS = 64;

const COMMA = 0x2c;
const COLON = 0x3a;
const BRACKET = 0x5b;
const BRACE = 0x7b;

/** Limits the parts of an answer: each holds some hundred bytes, and a message with more could not be sent back. */
export class PartBudget {
  #taken = 0;
  #values = 0;
  #eventChars = 0;
  #furtherChars = 0;
  #heldLogprobs = 0;

  take(): void {
    if (++this.#taken > MAX_PARTS) throw tooManyParts();
  }

  /** Counts a native event. Returns whether there is room for it. */
  takeEvent(json: string): boolean {
    this.#eventChars += json.length + EVENT_CHARS;
    return this.#eventChars <= MAX_EVENT_CHARS;
  }

  /** Whether there is room for all these events. */
  hasRoomFor(events: readonly string[]): boolean {
    return events.reduce((chars, { length }) => chars + length + EVENT_CHARS, this.#eventChars) <= MAX_EVENT_CHARS;
  }

  /** Counts kept fields by `sizeOfKept`; a negative number for those that are dropped. Returns whether there is room; if not, counts nothing. */
  takeFurther(chars: number): boolean {
    if (chars > 0 && this.#furtherChars + chars > MAX_FURTHER_CHARS) return false;
    this.#furtherChars += chars;
    return true;
  }

  /** As `takeFurther`, for log probabilities that wait for their content. */
  holdLogprobs(count: number): boolean {
    if (count > 0 && this.#heldLogprobs + count > MAX_HELD_LOGPROBS) return false;
    this.#heldLogprobs += count;
    return true;
  }

  /** Counts keys and values that are kept until the end of their block. Throws `upstream_protocol` beyond MAX_ANSWER_VALUES. */
  takeValues(values: number): void {
    this.#values += values;
    this.#requireRoom();
  }

  /**
   * Counts the keys and values of JSON, which may come in pieces; punctuation in strings counts too. Throws `upstream_protocol`
   * beyond MAX_ANSWER_VALUES.
   */
  takeJson(json: string): void {
    for (let at = 0; at < json.length; at++) {
      const char = json.charCodeAt(at);
      if (char === COMMA || char === COLON || char === BRACKET || char === BRACE) this.#values += 1;
    }
    this.#requireRoom();
  }

  #requireRoom(): void {
    if (this.#values > MAX_ANSWER_VALUES)
      throw new Failure("upstream_protocol", "The arguments or blocks in the provider's answer are too complex.");
  }
}
