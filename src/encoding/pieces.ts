/** Pieces that are joined before the end when they are small. */
const JOINED_PIECES = 128;
const JOINED_BYTES = 64 * 1024;

/** Pieces of bytes to be joined. They may come one by one in single bytes, and each takes some hundred bytes more than its content. */
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
