import { randomFillSync } from "node:crypto";
import { systemClock } from "../core/clock.ts";

const ALPHABET = Buffer.from("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
const LENGTH = 24;
/** Digits of the moment in Unix milliseconds: enough for some thousand years. The others are random, 95 bits. */
const TIME_LENGTH = 8;
/** Bytes at or above this would favour the alphabet's beginning. */
const UNBIASED = 256 - (256 % ALPHABET.length);

// Random bytes are drawn in large pieces: one system call serves two hundred IDs.
const pool = Buffer.alloc(4096);
let at = pool.length;
const digits = Buffer.alloc(LENGTH);
let digitsOfMs = -1;

/**
 * IDs begin with the time they are made at, in an alphabet that sorts as its bytes do: they are written into the ledger's
 * indexes in their order, and what is written together lies together. Random ones would each change another page of an
 * index, at a cost that grows with the ledger.
 */
function mint(prefix: string): string {
  writeTime(systemClock.now());
  for (let place = TIME_LENGTH; place < LENGTH;) {
    if (at === pool.length) {
      randomFillSync(pool);
      at = 0;
    }
    const byte = pool[at++]!;
    if (byte < UNBIASED) digits[place++] = ALPHABET[byte % ALPHABET.length]!;
  }
  return prefix + digits.toString("latin1");
}

function writeTime(nowMs: number): void {
  if (nowMs === digitsOfMs) return;
  digitsOfMs = nowMs;
  let rest = nowMs;
  for (let place = TIME_LENGTH - 1; place >= 0; place--) {
    digits[place] = ALPHABET[rest % ALPHABET.length]!;
    rest = Math.floor(rest / ALPHABET.length);
  }
}

/** A new completion's ID: `chatcmpl-` and 24 letters or digits. Those of one process sort by the time they are made at. */
export function newCompletionId(): string {
  return mint("chatcmpl-");
}

/** The request's ID: the caller's own when it is 1 to 128 visible ASCII characters, else a new one. */
export function requestIdFrom(given: string | undefined): string {
  return given !== undefined && /^[\x21-\x7e]{1,128}$/.test(given) ? given : mint("req_");
}
