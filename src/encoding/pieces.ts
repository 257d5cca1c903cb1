/** JOINED_PIECES small pieces, of JOINED_BYTES together at most, are joined before the end. */
const JOINED_PIECES = 128;
const JOINED_BYTES = 64 * 1024;

/** Collects pieces of bytes to be joined. Pieces may be single bytes, and each Buffer takes some hundred bytes beside its content. */
export class Pieces {
  readonly #earlier: Buffer[] = [];
  #latest: Buffer[] = [];

  add(piece: Buffer): void {
    this.#latest.push(piece);
    if (this.#latest.length < JOINED_PIECES) return;
    const bytes = this.#latest.reduce((sum, { length }) => sum + length, 0);
    if (bytes < JOINED_BYTES) this.#earlier.push(Buffer.concat(this.#latest, bytes));
    else this.#earlier.push(...this.#latest);
    this.#latest = [];
  }

  /** All bytes. One piece is not copied. */
  joined(): Buffer {
    const pieces = this.#earlier.length === 0 ? this.#latest : [...this.#earlier, ...this.#latest];
    return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
  }
}
