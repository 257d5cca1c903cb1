import { Failure } from "../../core/failure.ts";

/** Prefix of a message: one byte of flags, four of length. */
const PREFIX_BYTES = 5;

export interface FrameLimits {
  /** Limit of messages of a stream. */
  readonly messages: number;
  /** Limit of a message. */
  readonly bytes: number;
}

/** Finds the messages in a request's bytes, which arrive in pieces of any size. */
export class MessageFrames {
  readonly #limits: FrameLimits;
  #messages = 0;
  /** Bytes of the current prefix that have arrived. */
  #prefixBytes = 0;
  /** Length in the current prefix, then the bytes of the message that have not arrived. */
  #left = 0;
  #declaredBytes: number | undefined;

  constructor(limits: FrameLimits) {
    this.#limits = limits;
  }

  /** Length of all messages whose prefix has arrived, with their prefixes; undefined before the first. */
  get declaredBytes(): number | undefined {
    return this.#declaredBytes;
  }

  /**
   * Returns the positions in the next piece at which messages end. Throws `request_too_large`, and for a message too
   * many `invalid_request` or, where there may be more than one, `rate_limited`. The library refuses a large message too, but without details and without advice to retry policies. After
   * some second messages it calls the handler of a call that it has ended: such a call never ends.
   */
  endsIn(piece: Buffer): readonly number[] {
    const ends: number[] = [];
    for (let at = 0; at < piece.length;) {
      if (this.#prefixBytes < PREFIX_BYTES) this.#readPrefix(piece[at++]!);
      else {
        const bytes = Math.min(this.#left, piece.length - at);
        at += bytes;
        this.#left -= bytes;
      }
      if (this.#prefixBytes < PREFIX_BYTES || this.#left > 0) continue;
      ends.push(at);
      this.#prefixBytes = 0;
    }
    return ends;
  }

  #readPrefix(byte: number): void {
    if (this.#prefixBytes === 0) this.#begin();
    else this.#left = this.#left * 0x100 + byte;
    this.#prefixBytes += 1;
    if (this.#prefixBytes < PREFIX_BYTES) return;
    const { bytes } = this.#limits;
    this.#declaredBytes = (this.#declaredBytes ?? 0) + PREFIX_BYTES + this.#left;
    if (this.#left <= bytes) return;
    const sizes = `The message has ${this.#left} bytes; this method receives at most ${bytes}.`;
    throw new Failure("request_too_large", sizes);
  }

  #begin(): void {
    const { messages } = this.#limits;
    this.#messages += 1;
    if (this.#messages <= messages) return;
    if (messages === 1) throw new Failure("invalid_request", "This method takes one request message.");
    throw new Failure("rate_limited", `At most ${messages} messages may be sent on one stream of this method.`);
  }
}
