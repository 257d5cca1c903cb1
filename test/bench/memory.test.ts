import { describe, expect, it } from "vitest";
import { parseResident } from "../../bench/measure/resident.ts";
import { growthKiB } from "../../bench/memory/result.ts";

const samples = (...kiBs: readonly number[]) => kiBs.map((kiB, index) => ({ requests: (index + 1) * 1000, kiB }));

describe("the memory in RAM", () => {
  it("is the kernel's figure for a process", () => {
    expect(parseResident("Name:\tnode\nVmHWM:\t  999 kB\nVmRSS:\t  123456 kB\nThreads:\t8\n")).toBe(123_456);
    expect(parseResident("")).toBe(0);
  });

  it("grows by what the last quarter has more than the second, whatever the first was", () => {
    expect(growthKiB(samples(10, 20, 100, 100, 105, 110, 130, 130))).toBe(30);
    expect(growthKiB(samples(10, 20, 100, 102, 98, 101, 99, 103))).toBe(0);
  });
});
