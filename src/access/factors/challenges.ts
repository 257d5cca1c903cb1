import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { AccessContext } from "../context.ts";
import { hashToken } from "../secret-token.ts";

/** Life of a challenge. */
export const CHALLENGE_MS = 5 * 60_000;
const NONCE_BYTES = 16;
const TIME_BYTES = 6;

type ChallengeContext = Pick<AccessContext, "factors" | "clock">;

/** A challenge for a passkey: a random part, the time of its end, and a MAC of both and its purpose. Nothing is stored until it is spent. */
export async function issueChallenge({ factors, clock }: ChallengeContext, purpose: string): Promise<Buffer> {
  const facts = Buffer.alloc(NONCE_BYTES + TIME_BYTES);
  randomBytes(NONCE_BYTES).copy(facts);
  facts.writeUIntBE(clock.now() + CHALLENGE_MS, NONCE_BYTES, TIME_BYTES);
  return Buffer.concat([facts, macOf(await factors.challengeKey(), facts, purpose)]);
}

/** Whether a text in base64url is a challenge for this purpose that has not expired. */
export async function isChallenge({ factors, clock }: ChallengeContext, text: string, purpose: string) {
  const bytes = Buffer.from(text, "base64url");
  const facts = bytes.subarray(0, NONCE_BYTES + TIME_BYTES);
  const mac = macOf(await factors.challengeKey(), facts, purpose);
  const given = bytes.subarray(facts.length);
  return given.length === mac.length && timingSafeEqual(given, mac) && clock.now() < endOf(bytes);
}

/** Marks a valid challenge as used; false when it was used before. */
export function spendChallenge({ store, clock }: Pick<AccessContext, "store" | "clock">, text: string) {
  const bytes = Buffer.from(text, "base64url");
  // Hashes the decoded bytes: base64url has several texts for the same bytes.
  return store.spendChallenge({ hash: hashToken(bytes.toString("base64url")), expiresAtMs: endOf(bytes) }, clock.now());
}

function endOf(bytes: Buffer): number {
  return bytes.readUIntBE(NONCE_BYTES, TIME_BYTES);
}

function macOf(key: Buffer, facts: Buffer, purpose: string): Buffer {
  return createHmac("sha256", key).update(facts).update(purpose).digest();
}
