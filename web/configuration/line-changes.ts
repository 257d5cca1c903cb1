/** A line of a comparison: `-` only before, `+` only after, ` ` both. */
export type LineChange = readonly [mark: "-" | "+" | " ", text: string];

/** Compares two texts: the lines of their common beginning and end are unchanged; the lines between are removed and added. */
export function lineChanges(before: string, after: string): readonly LineChange[] {
  const [old, now] = [linesOf(before), linesOf(after)];
  let head = 0;
  while (head < Math.min(old.length, now.length) && old[head] === now[head]) head += 1;
  let tail = 0;
  while (tail < Math.min(old.length, now.length) - head && old.at(-1 - tail) === now.at(-1 - tail)) tail += 1;
  return [
    ...old.slice(0, head).map((line) => [" ", line] as const),
    ...old.slice(head, old.length - tail).map((line) => ["-", line] as const),
    ...now.slice(head, now.length - tail).map((line) => ["+", line] as const),
    ...old.slice(old.length - tail).map((line) => [" ", line] as const),
  ];
}

const linesOf = (text: string): readonly string[] => (text === "" ? [] : text.replace(/\n$/, "").split("\n"));
