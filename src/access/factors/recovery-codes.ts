import { hash, randomInt } from "node:crypto";

const COUNT = 10;
/** Leaves out letters and digits that look alike. */
const ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789";
const CHARACTERS = 16;
const GROUP = 4;

/** Ten new codes, as people write them down: `abcd-efgh-jkmn-pqrs`. */
export function generateRecoveryCodes(): string[] {
  return Array.from({ length: COUNT }, () => {
    const text = Array.from({ length: CHARACTERS }, () => ALPHABET[randomInt(ALPHABET.length)]).join("");
    return text.match(new RegExp(`.{${GROUP}}`, "g"))!.join("-");
  });
}

/** The stored form of a code: bound to its account. A slow hash would add nothing to 79 random bits. */
export function hashRecoveryCode(accountId: string, code: string): string {
  return hash("sha256", `${accountId} ${compactCode(code)}`, "hex");
}

/** Removes the separators that people write between the characters of a code. */
export function compactCode(code: string): string {
  return code.replaceAll(/[\s-]/g, "").toLowerCase();
}
