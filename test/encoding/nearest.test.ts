import { describe, expect, it } from "vitest";
import { nearest } from "../../src/encoding/nearest.ts";

describe("the nearest name", () => {
  it.each([
    ["gpt-4o-mnii", "gpt-4o-mini"],
    ["GPT-4O", "gpt-4o"],
    ["cladue-sonnet", "claude-sonnet"],
    ["a", "b"],
    ["gpt-4o-minixxx", "gpt-4o-mini"],
    ["text-embeding-3-smal", "text-embedding-3-small"],
  ])("to %s is %s", (word, found) => {
    expect(nearest(word, ["something-else", found, "another-name"])).toBe(found);
  });

  it.each([
    ["xyz", ["gpt-4o", "gpt-4o-mini"]],
    ["abcdef", ["uvwxyz"]],
    ["gpt", ["gpt-4o-mini"]],
    // Nine edits, of words that are long enough for more.
    [`${"a".repeat(40)}bcdefghij`, ["a".repeat(40)]],
    ["x".repeat(65), ["x".repeat(65)]],
  ])("to %s is none", (word, candidates) => {
    expect(nearest(word, candidates)).toBeUndefined();
  });

  it("has the fewest edits, and of equal ones is the first", () => {
    expect(nearest("model-one", ["model-ten", "model-ono", "model-ons"])).toBe("model-ono");
  });

  it("is that of a comparison of all cells", () => {
    const letters = "abc";
    const words = Array.from({ length: 300 }, (_, index) =>
      Array.from(
        { length: 3 + (index % 9) },
        (__, place) => letters[(index * 7 + place * place * (index % 5)) % 3],
      ).join(""),
    );
    for (const word of words.slice(0, 60)) {
      const most = Math.max(1, Math.floor(word.length / 3));
      const edits = words.map((other) => plainDistance(word, other));
      const least = Math.min(...edits);
      expect(nearest(word, words)).toBe(least > most ? undefined : words[edits.indexOf(least)]);
    }
  });

  it("is found among many that are like it", () => {
    const names = Array.from({ length: 1_000 }, (_, index) => `vendor${index % 20}/large-model-name-${index}`);
    for (const word of ["vendor17/large-modl-name-977", "vendor17/larg-emodel-name-977"])
      expect(nearest(word, names)).toBe("vendor17/large-model-name-977");
  });

  it.each([
    ["all of whose cells differ", "z".repeat(64)],
    ["that is like all of them", `${"organisation/model-with-a-long-name-".repeat(2)}xxxx`.slice(-64)],
  ])("compares few cells of many long names with a word %s", (_word, word) => {
    const names = Array.from({ length: 2_000 }, (_, index) =>
      `${"organisation/model-with-a-long-name-".repeat(2)}${index}`.slice(-64),
    );
    let reads = 0;
    const counted = names.map((name) => ({
      length: name.length,
      toLowerCase: () =>
        new Proxy({}, { get: (_, key) => (key === "length" ? name.length : ((reads += 1), name[Number(key)])) }),
    }));
    nearest(word, counted as unknown as string[]);
    expect(reads / names.length).toBeLessThan(200);
  });
});

function plainDistance(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      row.push(
        Math.min(
          rows[i - 1]![j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1),
          rows[i - 1]![j]! + 1,
          row[j - 1]! + 1,
          swapped ? rows[i - 2]![j - 2]! + 1 : Infinity,
        ),
      );
    }
    rows.push(row);
  }
  return rows[a.length]![b.length]!;
}
