import { hash } from "node:crypto";
import { crc32 } from "node:zlib";
import { randomBase62, toBase62 } from "./base62.ts";

const PREFIX = "sk_parley_";
const RANDOM_LENGTH = 40;
/** 62^6 is more than 2^32, so a CRC-32 always fits. */
const CHECKSUM_LENGTH = 6;
const SHAPE = /^sk_parley_[0-9A-Za-z]{46}$/;

/** A new API key: `sk_parley_`, 40 random base62 characters (238 bits), 6 of checksum. Shown to its owner once. */
export function generateApiKey(): string {
  const body = PREFIX + randomBase62(RANDOM_LENGTH);
  return body + checksum(body);
}

/** Whether the text can be a key at all: costs no look-up, and catches every single mistyped character. */
export function isApiKey(text: string): boolean {
  return SHAPE.test(text) && text.endsWith(checksum(text.slice(0, -CHECKSUM_LENGTH)));
}

/**
 * What is stored in place of a key: its whole SHA-256, in hexadecimal. A slow password hash would add nothing to 238
 * random bits.
 */
export function hashApiKey(key: string): string {
  return hash("sha256", key, "hex");
}

/** How a key is shown after its creation: `sk_parley_ab…wxyz`. */
export function displayApiKey(key: string): string {
  return `${key.slice(0, PREFIX.length + 2)}…${key.slice(-4)}`;
}

function checksum(body: string): string {
  return toBase62(crc32(body), CHECKSUM_LENGTH);
}
