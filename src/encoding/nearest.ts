/** Longest text that is compared. */
const MAX_CHARS = 64;
/** Edits of a misspelling at most: with more, each candidate would be compared in full. */
const MAX_EDITS = 8;
/** Candidates that are compared. A comparison takes some ten microseconds, and requests are refused with one. */
const MAX_COMPARED = 64;

/**
 * The candidate that `word` is probably a misspelling of: the one with the fewest edits, at most a third of the word and MAX_EDITS, at
 * least one allowed. Undefined without one, and for words of more than MAX_CHARS. Of many candidates those are compared that begin and
 * end most like the word.
 */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  if (word.length > MAX_CHARS) return undefined;
  const lower = word.toLowerCase();
  let best: string | undefined;
  let bestEdits = Math.min(Math.max(1, Math.floor(word.length / 3)), MAX_EDITS) + 1;
  const near = [...candidates].filter(({ length }) => Math.abs(length - word.length) < bestEdits);
  for (const candidate of likeliest(lower, near)) {
    // No longer than a row, too.
    if (Math.abs(candidate.length - word.length) >= bestEdits) continue;
    const edits = editDistance(lower, candidate.toLowerCase(), bestEdits);
    if (edits < bestEdits) [best, bestEdits] = [candidate, edits];
  }
  return best;
}

/** The MAX_COMPARED candidates that share the longest beginning and end with the word, in their order. */
function likeliest(lower: string, candidates: readonly string[]): readonly string[] {
  if (candidates.length <= MAX_COMPARED) return candidates;
  const shared = candidates.map((candidate) => sharedEnds(lower, candidate.toLowerCase()));
  const places = [...candidates.keys()].toSorted((one, other) => shared[other]! - shared[one]!);
  return places
    .slice(0, MAX_COMPARED)
    .toSorted((one, other) => one - other)
    .map((place) => candidates[place]!);
}

/** Characters of the common beginning and end. */
function sharedEnds(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  let start = 0;
  while (start < length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  return start + end;
}

/** Rows of a comparison: the current one and the two before. */
const ROWS = [0, 1, 2].map(() => new Uint8Array(MAX_CHARS + MAX_EDITS + 1));
/** Stands for a cell that is not compared. */
const FAR = 2 * MAX_CHARS;

/**
 * Levenshtein distance, with a swap of two neighbours as one edit, as far as it is below `limit`, at most MAX_EDITS + 1: one row at a
 * time, and of a row only the part that may be. FAR or any number from `limit` on otherwise.
 */
function editDistance(a: string, b: string, limit: number): number {
  let [row, above, next] = ROWS as [Uint8Array, Uint8Array, Uint8Array];
  for (let j = 0; j <= b.length; j++) row[j] = j;
  let leastBefore = 0;
  for (let i = 1; i <= a.length; i++) {
    const from = Math.max(1, i - limit + 1);
    const to = Math.min(b.length, i + limit - 1);
    next.fill(FAR);
    next[from - 1] = from === 1 ? i : FAR;
    let least = next[from - 1]!;
    for (let j = from; j <= to; j++) {
      let edits = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      edits = Math.min(edits, row[j]! + 1, next[j - 1]! + 1);
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (isSwap) edits = Math.min(edits, above[j - 2]! + 1);
      next[j] = edits;
      least = Math.min(least, edits);
    }
    // A later row is at least this one, or by a swap one more than the row before.
    if (least >= limit && leastBefore + 1 >= limit) return FAR;
    leastBefore = least;
    [row, above, next] = [next, row, above];
  }
  return row[b.length]!;
}
