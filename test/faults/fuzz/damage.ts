import type { Random } from "./random.ts";

/** Maximum number of damaged places in an input. */
const MAX_EDITS = 4;

/** Bytes to insert: known problems for parsers of HTTP, JSON and YAML. */
const BAD_PIECES = [
  "\r\n",
  "\n",
  "\r",
  "\0",
  '"',
  "{",
  "}",
  "[",
  "\\u0000",
  "\\ud800",
  ":",
  ",",
  "-1",
  "1e999",
  "null",
  "%00",
  "%",
  "\xff",
  "\xef\xbb\xbf",
  "\xc0\x80",
  "\xed\xa0\x80",
  "\xf0\x9f",
  "__proto__",
];

/** Returns a copy with some bytes removed, changed, repeated or inserted, or truncated. */
export function damage(bytes: Buffer, random: Random): Buffer {
  let damaged = bytes;
  for (let edits = 1 + random.below(MAX_EDITS); edits > 0; edits--) damaged = damageOnce(damaged, random);
  return damaged;
}

function damageOnce(bytes: Buffer, random: Random): Buffer {
  const at = random.below(bytes.length + 1);
  const [head, tail] = [bytes.subarray(0, at), bytes.subarray(at)];
  switch (random.below(6)) {
    case 0:
      return Buffer.concat([head, tail.subarray(1 + random.below(8))]);
    case 1:
      return Buffer.concat([head, random.bytes(1), tail.subarray(1)]);
    case 2:
      return Buffer.concat([head, Buffer.from(random.pick(BAD_PIECES), "latin1"), tail]);
    case 3:
      return Buffer.concat([head, head.subarray(Math.max(0, at - random.below(64))), tail]);
    case 4: {
      // Flips one bit.
      const flipped = Buffer.from(bytes);
      if (at < bytes.length) flipped[at]! ^= 1 << random.below(8);
      return flipped;
    }
    default:
      return head;
  }
}
