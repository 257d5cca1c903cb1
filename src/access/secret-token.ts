import { hash, randomBytes } from "node:crypto";

const BYTES = 32;
const SHAPE = /^[A-Za-z0-9_-]{43}$/;

/** A random secret of 256 bits for a cookie or a link: 43 characters that need no escaping. */
export function generateToken(): string {
  return randomBytes(BYTES).toString("base64url");
}

/** Whether the text has the form of a token, without a look-up. */
export function isToken(text: string): boolean {
  return SHAPE.test(text);
}

/** The stored form of a token. A slow hash would add nothing to 256 random bits. */
export function hashToken(token: string): string {
  return hash("sha256", token, "hex");
}
