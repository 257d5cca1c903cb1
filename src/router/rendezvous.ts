/**
 * Orders members by weighted rendezvous hashing. A key has the same order in every process, each member is first for its share of
 * the keys, and adding or removing a member moves only its own keys.
 */
export function byRendezvous<M extends Weighted>(members: readonly M[], key: number): M[] {
  // Each member draws a number between 0 and 1, and is sorted by the exponential waiting time that follows from it.
  return sortBy(members, ({ seed, weight }) => -Math.log((mix(key ^ seed) + 0.5) / 2 ** 32) / weight).order;
}

/** A pseudo-random number from 0 to 1 for a key and a member, independent of `byRendezvous`. */
export function drawFor(key: number, { seed }: Weighted): number {
  return mix(mix(key) ^ seed) / 2 ** 32;
}

/**
 * Orders members at random by their weights: draws the first in proportion to the weights, then the next among the others in the
 * same way. `random` returns 0 to 1. This costs half as much as sorting exponential waiting times.
 */
export function byWeight<M extends Weighted>(members: readonly M[], random: () => number): M[] {
  const order = [...members];
  const last = order.length - 1;
  let left = 0;
  for (const { weight } of members) left += weight;
  for (let place = 0; place < last; place++) {
    let at = place;
    let drawn = random() * left - order[at]!.weight;
    while (drawn >= 0 && at < last) drawn -= order[++at]!.weight;
    const chosen = order[at]!;
    order[at] = order[place]!;
    order[place] = chosen;
    left -= chosen.weight;
  }
  return order;
}

/** A member with its weight. */
export interface Weighted {
  readonly weight: number;
  /** A hash of its name. */
  readonly seed: number;
}

/**
 * Stable sort by a value that is computed once per member, the smallest first. Insertion sort: for the few members of a route it
 * costs a quarter of `toSorted`, and it runs for each request.
 */
export function sortBy<M>(members: readonly M[], valueOf: (member: M) => number): { order: M[]; values: number[] } {
  const order: M[] = [];
  const values: number[] = [];
  for (const member of members) {
    const value = valueOf(member);
    let place = order.length;
    for (; place > 0 && values[place - 1]! > value; place--) {
      order[place] = order[place - 1]!;
      values[place] = values[place - 1]!;
    }
    order[place] = member;
    values[place] = value;
  }
  return { order, values };
}

/** Builds a 32-bit hash from texts. */
export class Hash {
  #state = 0x811c9dc5;

  /** Adds the length and the characters of a text; of a long text, MAX_CHARS at each end. */
  add(text: string): void {
    this.#addNumber(text.length);
    if (text.length <= 2 * MAX_CHARS) this.#addChars(text, 0, text.length);
    else {
      this.#addChars(text, 0, MAX_CHARS);
      this.#addChars(text, text.length - MAX_CHARS, text.length);
    }
  }

  get value(): number {
    return mix(this.#state);
  }

  #addChars(text: string, from: number, to: number): void {
    let state = this.#state;
    // FNV-1a, by UTF-16 units.
    for (let at = from; at < to; at++) state = Math.imul(state ^ text.charCodeAt(at), 0x01000193);
    this.#state = state;
  }

  #addNumber(number: number): void {
    this.#state = Math.imul(this.#state ^ number, 0x01000193);
  }
}

/** Characters of each end of a text that a hash reads. */
const MAX_CHARS = 256;

/** The hash of one text. */
export function hashOf(text: string): number {
  const hash = new Hash();
  hash.add(text);
  return hash.value;
}

/** Spreads the bits of a number over 32 bits: the finalizer of MurmurHash3. */
function mix(number: number): number {
  let bits = number ^ (number >>> 16);
  bits = Math.imul(bits, 0x85ebca6b);
  bits ^= bits >>> 13;
  bits = Math.imul(bits, 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
