import { hash, randomBytes } from "node:crypto";

const BYTES = 32;
const SHAPE = /^[A-Za-z0-9_-]{43}$/;

/** A secret of 256 random bits, for a cookie or a link: 43 characters that need no escaping there. */
export function generateToken(): string {
  return randomBytes(BYTES).toString("base64url");
}

/** Whether the text can be a token at all: costs no look-up. */
export function isToken(text: string): boolean {
  return SHAPE.test(text);
}

/** What is stored in place of a token. A slow hash would add nothing to 256 random bits. */
export function hashToken(token: string): string {
  return hash("sha256", token, "hex");
}
