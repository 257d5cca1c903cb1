/**
 * The candidate that `word` is probably a misspelling of: the one with the fewest edits, at most a third of the word, at least one
 * allowed. Undefined without one.
 */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestEdits = Math.max(1, Math.floor(word.length / 3)) + 1;
  for (const candidate of candidates) {
    const edits = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (edits < bestEdits) [best, bestEdits] = [candidate, edits];
  }
  return best;
}

/** Levenshtein distance, with a swap of two neighbours as one edit; one row at a time. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  let above: number[] = [];
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const transposition = swapped ? above[j - 2]! + 1 : Infinity;
      next.push(Math.min(substitution, transposition, row[j]! + 1, next[j - 1]! + 1));
    }
    above = row;
    row = next;
  }
  return row[b.length]!;
}
