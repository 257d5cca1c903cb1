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
    expect(isSteady({ costs, units: 20_000, seconds: 3 })).toBe(expected);
  });

  it.each([
    ["few requests in a short time", 19_999, 9.9, false],
    ["many requests in a short time", 20_000, 3, true],
    ["few requests in a long time", 1000, 10, true],
  ])("with a level cost after %s", (_, units, seconds, expected) => {
    expect(isSteady({ costs: [100, 100, 100, 100, 100, 100], units, seconds })).toBe(expected);
  });
});
