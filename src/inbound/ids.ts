import { fillWithRandomBase62, writeBase62 } from "../access/base62.ts";
import { systemClock } from "../core/clock.ts";

const LENGTH = 24;
/** Digits of the moment in Unix milliseconds: enough for some thousand years. The others are random, 95 bits. */
const TIME_LENGTH = 8;

const digits = Buffer.alloc(LENGTH);
let digitsOfMs = -1;

/**
 * IDs begin with the time they are made at, in an alphabet that sorts as its bytes do: they are written into the ledger's
 * indexes in their order, and what is written together lies together. Random ones would each change another page of an
 * index, at a cost that grows with the ledger.
 */
function mint(prefix: string): string {
  const nowMs = systemClock.now();
  if (nowMs !== digitsOfMs) {
    digitsOfMs = nowMs;
    writeBase62(nowMs, digits, TIME_LENGTH);
  }
  fillWithRandomBase62(digits, TIME_LENGTH);
  return prefix + digits.toString("latin1");
}

/** A new completion's ID: `chatcmpl-` and 24 letters or digits. Those of one process sort by the time they are made at. */
export function newCompletionId(): string {
  return mint("chatcmpl-");
}

/** The request's ID: the caller's own when it is 1 to 128 visible ASCII characters, else a new one. */
export function requestIdFrom(given: string | undefined): string {
  return given !== undefined && /^[\x21-\x7e]{1,128}$/.test(given) ? given : mint("req_");
}
