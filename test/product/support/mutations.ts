/** How many bytes one mutation changes at most. */
const MAX_EDITS = 4;

/** What is put into requests: what parsers of HTTP and JSON are known to stumble over. */
const BAD_PIECES = [
  "\r\n",
  "\n",
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
];

/** So many damaged copies of valid requests: the same ones for the same seed. */
export function* mutations(
  valid: readonly Buffer[],
  { count, seed }: { readonly count: number; readonly seed: number },
): Generator<Buffer> {
  const random = createRandom(seed);
  const below = (limit: number): number => Math.floor(random() * limit);
  for (let made = 0; made < count; made++) {
    let bytes = valid[below(valid.length)]!;
    for (let edits = 1 + below(MAX_EDITS); edits > 0; edits--) bytes = damage(bytes, below);
    yield bytes;
  }
}

function damage(bytes: Buffer, below: (limit: number) => number): Buffer {
  const at = below(bytes.length + 1);
  const [head, tail] = [bytes.subarray(0, at), bytes.subarray(at)];
  switch (below(5)) {
    case 0:
      return Buffer.concat([head, tail.subarray(1 + below(8))]);
    case 1:
      return Buffer.concat([head, Buffer.from([below(256)]), tail.subarray(1)]);
    case 2:
      return Buffer.concat([head, Buffer.from(BAD_PIECES[below(BAD_PIECES.length)]!, "latin1"), tail]);
    case 3:
      return Buffer.concat([head, head.subarray(Math.max(0, at - below(64))), tail]);
    default:
      return head;
  }
}

/** A small generator of numbers from 0 to 1 (mulberry32): the same sequence for the same seed. */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
