import { createHmac, randomBytes } from "node:crypto";

const PREFIX = "whsec_";
const KEY_BYTES = 32;

/** A new key of signatures: `whsec_` and 32 random bytes in base64. */
export function generateSigningKey(): string {
  return `${PREFIX}${randomBytes(KEY_BYTES).toString("base64")}`;
}

/** Headers with the signature of a webhook's body, by the specification Standard Webhooks: HMAC-SHA256 of ID, time and body. */
export function signatureHeaders(
  body: string,
  { id, atMs, signingKey }: { readonly id: string; readonly atMs: number; readonly signingKey: string },
): Record<string, string> {
  const seconds = String(Math.floor(atMs / 1000));
  const key = Buffer.from(signingKey.slice(PREFIX.length), "base64");
  const signature = createHmac("sha256", key).update(`${id}.${seconds}.${body}`).digest("base64");
  return { "webhook-id": id, "webhook-timestamp": seconds, "webhook-signature": `v1,${signature}` };
}
