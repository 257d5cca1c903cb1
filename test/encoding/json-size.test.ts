import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { endOfString, exceedsJsonSize, measureJson } from "../../src/encoding/json-size.ts";
import { anyCharacter } from "../support/any-character.ts";

const MAX = { depth: 64, values: 100_000 };

/** How deep a value is nested, the slow and sure way. */
function depthOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

/** Values that follow another one, keys, and brackets: what costs time one by one. */
function tokensOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  const inner = Object.values(value);
  const own = 1 + Math.max(inner.length - 1, 0) + (Array.isArray(value) ? 0 : inner.length);
  return own + inner.reduce((sum: number, each) => sum + tokensOf(each), 0);
}

describe("the measure of JSON", () => {
  it("is what a parser would count", () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 4, stringUnit: anyCharacter }), (text) => {
        const json = JSON.stringify(JSON.parse(text)); // without keys that are given twice
        const value: unknown = JSON.parse(json);
        expect(measureJson(json, MAX)).toEqual({ depth: depthOf(value), values: 1 + tokensOf(value) });
      }),
      { numRuns: 300 },
    );
  });

  it.each([
    ['{"a":"[[[[[["}', 1],
    [String.raw`{"a":"\"[[[["}`, 1],
    [String.raw`{"a":"\\","b":[]}`, 2],
    [String.raw`{"a":"\\\"[["}`, 1],
    [String.raw`["\\\\",[[]]]`, 3],
    ['{"[[[":1}', 1],
  ])("does not count what stands in strings: %s", (json, depth) => {
    expect(measureJson(json, MAX).depth).toBe(depth);
  });

  it("finds the end of every string, wherever its escapes are", () => {
    const piece = fc.constantFrom(
      '"',
      "\\",
      '\\"',
      "é",
      "a".repeat(39),
      "b".repeat(40),
      "c".repeat(41),
      "d".repeat(90),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        const json = JSON.stringify(pieces.join(""));
        expect(endOfString(`${json},"x"`, 0)).toBe(json.length - 1);
      }),
      { numRuns: 2_000 },
    );
  });

  it.each(['"', '"\\', '{"a', "]]]]", "", '"\\"'])("of broken JSON comes to an end: %j", (json) => {
    expect(measureJson(json, MAX).depth).toBeLessThanOrEqual(1);
  });

  it("counts brackets, of which a text may have many without a comma", () => {
    expect(measureJson("[[[[]]]]", MAX).values).toBe(5);
  });

  it("stops soon after either limit", () => {
    expect(measureJson("[".repeat(1_000_000), MAX).depth).toBe(65);
    expect(measureJson("[".repeat(1_000_000), { depth: 3, values: 9 }).depth).toBe(4);
    expect(measureJson("1,".repeat(1_000_000), { depth: 3, values: 9 }).values).toBe(10);
    expect(exceedsJsonSize("[[1,2]]", { depth: 2, values: 4 })).toBe(false);
    expect(exceedsJsonSize("[[1,2]]", { depth: 1, values: 4 })).toBe(true);
    expect(exceedsJsonSize("[[1,2]]", { depth: 2, values: 3 })).toBe(true);
  });
});
