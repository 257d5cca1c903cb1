/** Longest text that is compared, in characters. */
const MAX_CHARS = 64;
/** Largest number of edits of a misspelling. A larger limit would compare each candidate in full. */
const MAX_EDITS = 8;
/** Limit of compared candidates. A comparison takes some ten microseconds, and runs for each request with an unknown name. */
const MAX_COMPARED = 64;

/**
 * The candidate of which `word` is probably a misspelling: the one with the fewest edits. A third of the word's length is allowed, at
 * least one edit and at most MAX_EDITS. Undefined without such a candidate, and for words longer than MAX_CHARS. Of more than
 * MAX_COMPARED candidates, only those with the most similar beginning and end are compared.
 */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  if (word.length > MAX_CHARS) return undefined;
  const lower = word.toLowerCase();
  let best: string | undefined;
  let bestEdits = Math.min(Math.max(1, Math.floor(word.length / 3)), MAX_EDITS) + 1;
  const near = [...candidates].filter(({ length }) => Math.abs(length - word.length) < bestEdits);
  for (const candidate of likeliest(lower, near)) {
    // This also keeps the candidate within the length of a row.
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

/** Number of characters of the common beginning and end. */
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
/** Value of a cell that is not computed. */
const FAR = 2 * MAX_CHARS;

/**
 * Edit distance (optimal string alignment: Levenshtein with a swap of two neighbours as one edit) if it is below `limit`, which is at
 * most MAX_EDITS + 1; otherwise FAR or any number from `limit` on. Computes one row at a time, and only the cells of a row that can
 * be below `limit`.
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
    // All later rows are at least this row's minimum, or, with a swap, the minimum of the row before plus one.
    if (least >= limit && leastBefore + 1 >= limit) return FAR;
    leastBefore = least;
    [row, above, next] = [next, row, above];
  }
  return row[b.length]!;
}
