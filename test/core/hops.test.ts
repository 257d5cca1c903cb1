import { readHops, refuseCircles } from "../../src/core/hops.ts";
import { describe, expect, it } from "vitest";
import { Failure } from "../../src/core/failure.ts";

describe("the count of gateways", () => {
  it.each([
    [undefined, 0],
    ["0", 0],
    ["1", 1],
    ["42", 42],
    ["", 0],
    ["-1", 0],
    ["1.5", 0],
    ["1e9", 0],
    ["1, 1", 0],
    [["1", "1"], 0],
  ])("of %j is %i", (header, hops) => {
    expect(readHops(header)).toBe(hops);
  });

  it.each([0, 1])("of %i is permitted: one gateway may be behind another", (hops) => {
    expect(() => refuseCircles(hops)).not.toThrow();
  });

  it.each([2, 3, 999])("of %i is refused with what to look at", (hops) => {
    const refusal = new Failure(
      "invalid_request",
      `The request has come through ${hops} gateways already. Does a provider's base_url lead back to its own gateway?`,
    );
    expect(() => refuseCircles(hops)).toThrow(refusal);
  });
});
