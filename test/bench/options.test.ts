import { describe, expect, it } from "vitest";
import { PARTS, readOptions } from "../../bench/options.ts";

describe("the command line of the benchmark", () => {
  it("measures all parts by default", () => {
    expect(readOptions([])).toMatchObject({ parts: PARTS, write: false, long: false, profile: false });
  });

  it("keeps its own order of the parts", () => {
    const { parts, warmUpSeconds } = readOptions(["memory", "unary", "--warm-up", "3"]);
    expect(parts).toEqual(["unary", "memory"]);
    expect(warmUpSeconds).toBe(3);
  });

  it("compares with another checkout", () => {
    expect(readOptions(["--against", "../before", "unary"])).toMatchObject({ against: "../before", parts: ["unary"] });
  });

  it.each([
    [["speed"], "Unknown part speed"],
    [["--rounds", "0"], "--rounds must be a number above 0"],
    [["--warm-up", "long"], "--warm-up must be a number above 0"],
  ])("refuses %j", (args, reason) => {
    expect(() => readOptions(args)).toThrow(reason);
  });
});
