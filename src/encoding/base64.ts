/** Characters that are checked at once. Small, so that the temporary strings are collected in V8's young generation. */
const STEP = 32 * 1024;

/**
 * Bytes in base64, in the pieces in which they arrived, so that a picture is passed on without a copy. The characters are
 * canonical: those that Node's encoder would write for the bytes.
 */
export class Base64 {
  /** Characters, one byte each. */
  readonly pieces: readonly Buffer[];

  private constructor(pieces: readonly Buffer[]) {
    this.pieces = pieces;
  }

  /** Adopts the pieces; undefined when they are not canonical base64. */
  static read(pieces: readonly Buffer[]): Base64 | undefined {
    return isCanonical(pieces) ? new Base64(pieces) : undefined;
  }

  /** Number of characters. */
  get length(): number {
    return this.pieces.reduce((chars, { length }) => chars + length, 0);
  }

  decode(): Uint8Array<ArrayBuffer> {
    return Buffer.from(this.toString(), "base64");
  }

  toString(): string {
    return Buffer.concat(this.pieces).toString("latin1");
  }

  toJSON(): string {
    return this.toString();
  }
}

/** Bytes of a message, such as `Image.source`, decoded at their first use. */
export class EncodedSource {
  readonly case = "data";
  readonly base64: Base64;
  #value: Uint8Array<ArrayBuffer> | undefined;

  constructor(base64: Base64) {
    this.base64 = base64;
  }

  get value(): Uint8Array<ArrayBuffer> {
    return (this.#value ??= this.base64.decode());
  }
}

/**
 * Whether decoding and encoding returns the same characters. That is true for any groups of four characters of the alphabet, so the
 * groups of each piece are checked alone, and the remaining characters of all pieces together.
 */
function isCanonical(pieces: readonly Buffer[]): boolean {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  if (length === 0 || length % 4 !== 0) return false;
  const room = Buffer.allocUnsafeSlow(Math.max(STEP, 3 * pieces.length));
  const isSame = (text: string): boolean => room.toString("base64", 0, room.write(text, "base64")) === text;
  const isFull = (text: string): boolean => text.length === 0 || (text.at(-1) !== "=" && isSame(text));
  // Only the last group may be padded.
  let left = length - 4;
  let odd = "";
  let end = "";
  for (const piece of pieces) {
    const body = Math.min(left, piece.length);
    const fours = body - (body % 4);
    for (let at = 0; at < fours; at += STEP) {
      if (!isFull(piece.toString("latin1", at, Math.min(at + STEP, fours)))) return false;
    }
    odd += piece.toString("latin1", fours, body);
    end += piece.toString("latin1", body);
    left -= body;
  }
  return isFull(odd) && isSame(end);
}
