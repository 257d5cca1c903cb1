import { randomBytes } from "node:crypto";

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const LENGTH = 24;
/** Bytes at or above this would favour the alphabet's beginning. */
const UNBIASED = 256 - (256 % ALPHABET.length);

// Random bytes are drawn in large pieces: one system call serves a hundred IDs.
let pool = Buffer.alloc(0);
let at = 0;

function mint(prefix: string): string {
  let id = prefix;
  for (let left = LENGTH; left > 0;) {
    if (at === pool.length) {
      pool = randomBytes(4096);
      at = 0;
    }
    const byte = pool[at++]!;
    if (byte >= UNBIASED) continue;
    id += ALPHABET[byte % ALPHABET.length];
    left -= 1;
  }
  return id;
}

/** A new completion's ID: `chatcmpl-` and 24 letters or digits. */
export function newCompletionId(): string {
  return mint("chatcmpl-");
}

/** The request's ID: the caller's own when it is 1 to 128 visible ASCII characters, else a new one. */
export function requestIdFrom(given: string | undefined): string {
  return given !== undefined && /^[\x21-\x7e]{1,128}$/.test(given) ? given : mint("req_");
}
