import { hash, randomFillSync } from "node:crypto";
import { crc32 } from "node:zlib";

const DIGITS = Buffer.from("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");

/** The largest multiple of 62 in a byte: larger bytes are discarded, or the first digits would be more frequent. */
const FAIR_BYTES = 62 * 4;

// Filled from the operating system in large pieces: one system call serves two hundred IDs.
const pool = Buffer.alloc(4096);
let at = pool.length;

/**
 * Fills the text from `from` to its end with random base62 digits, uniformly distributed, from the system's secure source.
 */
export function fillWithRandomBase62(text: Buffer, from: number): void {
  for (let place = from; place < text.length;) {
    if (at === pool.length) {
      randomFillSync(pool);
      at = 0;
    }
    const byte = pool[at]!;
    // The bytes of secrets must not remain in the pool.
    pool[at++] = 0;
    if (byte < FAIR_BYTES) text[place++] = DIGITS[byte % 62]!;
  }
}

/** Returns `length` random digits. */
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

/** Formats a whole number in base 62, with leading zeros to `length` characters. */
export function toBase62(value: number, length: number): string {
  const text = Buffer.alloc(length);
  writeBase62(value, text, length);
  return text.toString("latin1");
}

const PREFIX = "sk_parley_";
const RANDOM_LENGTH = 40;
/** 62^6 is more than 2^32, so a CRC-32 always fits. */
const CHECKSUM_LENGTH = 6;
const RANDOM_PART = /^[0-9A-Za-z]{46}$/;

/** A new API key: `sk_parley_`, 40 random base62 characters (238 bits), 6 of checksum. Shown to its owner once. */
export function generateApiKey(): string {
  return newSecret(PREFIX);
}

/** A new secret with a prefix that says what it is for. */
export function newSecret(prefix: string): string {
  const body = prefix + randomBase62(RANDOM_LENGTH);
  return body + checksum(body);
}

/**
 * Whether the text has the form and checksum of a key: without a look-up, and with every single mistyped character detected.
 */
export function isApiKey(text: string): boolean {
  return isSecret(text, PREFIX);
}

/** `isApiKey` for a secret with another prefix. */
export function isSecret(text: string, prefix: string): boolean {
  return (
    text.startsWith(prefix) &&
    RANDOM_PART.test(text.slice(prefix.length)) &&
    text.endsWith(checksum(text.slice(0, -CHECKSUM_LENGTH)))
  );
}

/**
 * The stored form of a key: its whole SHA-256, in hexadecimal. A slow password hash would add nothing to 238 random bits.
 */
export function hashApiKey(key: string): string {
  return hash("sha256", key, "hex");
}

/** The displayed form of a key after its creation: `sk_parley_ab…wxyz`. */
export function displayApiKey(key: string): string {
  return displaySecret(key, PREFIX);
}

/** `displayApiKey` for a secret with another prefix. */
export function displaySecret(secret: string, prefix: string): string {
  return `${secret.slice(0, prefix.length + 2)}…${secret.slice(-4)}`;
}

function checksum(body: string): string {
  return toBase62(crc32(body), CHECKSUM_LENGTH);
}
