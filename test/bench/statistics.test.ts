import { describe, expect, it } from "vitest";
import { median, quiet } from "../../bench/measure/statistics.ts";

describe("the statistics of the benchmark", () => {
  it.each([
    [[3, 1, 2], 2],
    [[10, 9, 1, 2], 5.5],
    [[7], 7],
    // Sorted as numbers, not as text.
    [[100, 20, 3], 20],
  ])("the median of %j is %d", (values, expected) => {
    expect(median(values)).toBe(expected);
  });

  it.each([
    [[50, 1, 60, 3, 70, 80, 90, 40, 30, 20], 2],
    [[5, 4, 9], 4],
    [[8], 8],
  ])("the quiet cost of %j is the mean of its cheapest fifth: %d", (values, expected) => {
    expect(quiet(values)).toBe(expected);
  });

  it("leaves the values in their order, which is that of the rounds", () => {
    const values = [3, 1, 2];
    median(values);
    quiet(values);
    expect(values).toEqual([3, 1, 2]);
  });
});
