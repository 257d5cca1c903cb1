import { describe, expect, it } from "vitest";
import { formatLatency, summariseLatency } from "../../bench/latency/result.ts";

const slice = (...latenciesMs: readonly number[]) => ({ latenciesMs, wrong: 0, firstWrong: undefined });

describe("the latency that is added", () => {
  it("is the difference to the direct call of the same round", () => {
    const [, parley] = summariseLatency([
      { name: "direct", slices: [slice(1, 1, 9), slice(5, 5, 9), slice(2, 2, 2)] },
      { name: "Parley", slices: [slice(2, 2, 10), slice(6, 6, 11), slice(4, 4, 4)] },
    ]);
    expect(parley).toMatchObject({ p50Ms: 4, p99Ms: 10, addedP50Ms: 1, addedP99Ms: 2, problem: undefined });
  });

  it("is invalid after a wrong answer, and the table says why", () => {
    const results = summariseLatency([
      { name: "Parley", slices: [{ ...slice(1), wrong: 1, firstWrong: "status 503" }] },
    ]);
    expect(formatLatency({ load: "unary", perSecond: 1000, results })).toContain(
      "! Parley: 1 wrong answers, first: status 503; this is not a figure",
    );
  });
});
