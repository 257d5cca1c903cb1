import { describe, expect, it } from "vitest";
import { estimateTextTokens } from "../../src/core/token-estimate.ts";

describe("the estimated tokens of a text", () => {
  it.each([
    ["English: one for four characters", "The quick brown fox jumps over the lazy dog.", 0.25],
    ["Cyrillic: one for each character", "Съешьещёэтихмягкихбулок", 1],
    ["Greek: one for each character", "ξεσκεπάζω", 1],
    ["Chinese: more than one for each character", "我能吞下玻璃而不伤身体", 1.75],
    ["Japanese: more than one for each character", "いろはにほへと", 1.75],
    ["Thai: more than one for each character", "เป็นมนุษย์", 1.75],
    ["emoji: two for each", "🎉🚀🔥", 2],
  ])("%s", (_, text, each) => {
    expect(estimateTextTokens(text)).toBeCloseTo(Array.from(text).length * each, 6);
  });

  it("add up where scripts are mixed, and are none for nothing", () => {
    expect(estimateTextTokens("abcdж字🎉")).toBe(1 + 1 + 1.75 + 2);
    expect(estimateTextTokens("")).toBe(0);
  });
});
