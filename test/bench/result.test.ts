import { describe, expect, it } from "vitest";
import { planLoads } from "../../bench/loads.ts";
import { summarise } from "../../bench/measure/result.ts";
import type { Series, Slice } from "../../bench/measure/rounds.ts";
import { formatLoad } from "../../bench/report.ts";

const [paced] = planLoads(["stream"]);

function slice(fields: Partial<Slice>): Slice {
  return {
    cpuUs: 10,
    threadUs: { main: 8, SQLite: 1, V8: 1, libuv: 0, other: 0 },
    unitsPerSecond: 10_000,
    serverShare: 0.5,
    serverWaitShare: 0,
    generatorShare: 0.1,
    upstreamShare: 0.1,
    elapsedMs: paced!.paceMs!,
    wrong: 0,
    firstWrong: undefined,
    ...fields,
  };
}

function series(name: string, ...slices: readonly Partial<Slice>[]): Series {
  return { name, warmUp: { slices: 8, isSteady: true }, slices: slices.map(slice) };
}

describe("the result of a load", () => {
  it("compares round by round, so that a slow minute affects all contestants", () => {
    const all = [
      series("floor", ...[10, 20, 40].map((cpuUs) => ({ cpuUs }))),
      series("Parley", ...[15, 30, 60].map((cpuUs) => ({ cpuUs }))),
    ];
    const { results } = summarise(paced!, all, "floor");
    expect(results[1]).toMatchObject({
      cpuUs: { median: 30, quiet: 15 },
      ratio: { median: 1.5, quiet: 1.5 },
      problem: undefined,
    });
  });

  it("says what Parley's threads have of the cost, and whose warm-up was too short", () => {
    const all = [series("floor", {}), { ...series("Parley", {}), warmUp: { slices: 3, isSteady: false } }];
    const text = formatLoad(summarise(paced!, all, "floor"));
    expect(text).toContain("Parley by thread: main 8.0, SQLite 1.0, V8 1.0");
    expect(text).toContain("the warm-up ended before the cost was steady: Parley (3 slices)");
  });

  it.each([
    ["a wrong answer", { wrong: 2, firstWrong: "status 503" }, "2 wrong answers, first: status 503"],
    ["a pace that is not kept", { elapsedMs: 2600 }, "behind the pace: 2600 ms instead of 2000"],
  ])("is invalid after %s, and the table says why", (_, fields, problem) => {
    const result = summarise(paced!, [series("Parley", fields)], "Parley");
    expect(result.results[0]!.problem).toBe(problem);
    expect(formatLoad(result)).toContain(`! Parley: ${problem}; this is not a figure`);
  });
});
