import { randomBytes } from "node:crypto";

const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** The largest multiple of 62 in a byte: larger bytes are thrown away, or the first digits would come up more often. */
const FAIR_BYTES = 62 * 4;

/** `length` random characters, each of the 62 equally likely, from the operating system's secure source. */
export function randomBase62(length: number): string {
  let text = "";
  while (text.length < length) {
    for (const byte of randomBytes(length - text.length)) {
      if (byte < FAIR_BYTES) text += DIGITS[byte % 62];
    }
  }
  return text;
}

/** A whole number in base 62, with leading zeros to `length` characters. */
export function toBase62(value: number, length: number): string {
  let text = "";
  for (let rest = value; text.length < length; rest = Math.floor(rest / 62)) text = DIGITS[rest % 62] + text;
  return text;
}
