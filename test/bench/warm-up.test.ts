import { describe, expect, it } from "vitest";
import { isSteady } from "../../bench/measure/warm-up.ts";

describe("the end of a warm-up", () => {
  it.each([
    ["too little was seen", [100, 100, 100, 100, 100], false],
    ["the cost still falls", [400, 300, 250, 220, 200, 180], false],
    ["the cost stays", [400, 300, 100, 101, 99, 100, 100, 99, 101, 100], true],
    ["one slice was cheap by chance", [100, 100, 100, 100, 40, 100], true],
    ["the cost rises again", [100, 100, 100, 130, 130, 130], true],
  ])("when %s: %j is %s", (_, costs, expected) => {
    expect(isSteady(costs)).toBe(expected);
  });
});
