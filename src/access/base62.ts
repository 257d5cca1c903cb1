import { randomFillSync } from "node:crypto";

const DIGITS = Buffer.from("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");

/** The largest multiple of 62 in a byte: larger bytes are thrown away, or the first digits would come up more often. */
const FAIR_BYTES = 62 * 4;

// Drawn from the operating system in large pieces: one system call serves two hundred IDs.
const pool = Buffer.alloc(4096);
let at = pool.length;

/** Fills the text from a position on with random digits, each of the 62 equally likely, from the system's secure source. */
export function fillWithRandomBase62(text: Buffer, from: number): void {
  for (let place = from; place < text.length;) {
    if (at === pool.length) {
      randomFillSync(pool);
      at = 0;
    }
    const byte = pool[at]!;
    // Secrets are made of these bytes as well, and must not remain here.
    pool[at++] = 0;
    if (byte < FAIR_BYTES) text[place++] = DIGITS[byte % 62]!;
  }
}

/** `length` random digits. */
export function randomBase62(length: number): string {
  const text = Buffer.alloc(length);
  fillWithRandomBase62(text, 0);
  return text.toString("latin1");
}

/** Writes a whole number into the first `length` characters of the text, with leading zeros. */
export function writeBase62(value: number, text: Buffer, length: number): void {
  let rest = value;
  for (let place = length - 1; place >= 0; place--) {
    text[place] = DIGITS[rest % 62]!;
    rest = Math.floor(rest / 62);
  }
}

/** A whole number in base 62, with leading zeros to `length` characters. */
export function toBase62(value: number, length: number): string {
  const text = Buffer.alloc(length);
  writeBase62(value, text, length);
  return text.toString("latin1");
}
