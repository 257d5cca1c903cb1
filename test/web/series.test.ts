import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { LatencyPointSchema, UsageRowSchema } from "../../gen/parley/console/v1/usage_pb.js";
import { groupSeries, latencySeries, stepsOf, totalSeries } from "../../web/usage/series.ts";

const DAY_MS = 86_400_000;
const STEPS = [0, DAY_MS, 2 * DAY_MS];

const row = (group: string, day: number, completions: bigint) => {
  const init: MessageInitShape<typeof UsageRowSchema> = { group, stepTime: timestampFromMs(day * DAY_MS) };
  return create(UsageRowSchema, { ...init, sums: { completions } });
};
const of = ({ completions }: { readonly completions: bigint }): bigint => completions;

describe("chart series", () => {
  it("have every step that overlaps the period", () => {
    expect(stepsOf({ sinceMs: 5, untilMs: 2 * DAY_MS + 1 }, DAY_MS)).toEqual(STEPS);
    expect(stepsOf({ sinceMs: 0, untilMs: 2 * DAY_MS }, DAY_MS)).toEqual([0, DAY_MS]);
  });

  it("are zero for steps without rows, in the order of the groups, with all others last", () => {
    const rows = [row("b", 0, 1n), row("", 0, 9n), row("a", 2, 2n), row("b", 2, 3n)];
    const series = groupSeries(rows, { steps: STEPS, order: ["a", "b"], of, nameOf: ({ group }) => `<${group}>` });
    expect(series).toEqual([
      { id: "a", name: "<a>", colour: 1, values: [0, 0, 2] },
      { id: "b", name: "<b>", colour: 2, values: [1, 0, 3] },
      { id: "", name: "<>", colour: 7, values: [9, 0, 0] },
    ]);
  });

  it("add up all groups of a step in a total", () => {
    const rows = [row("a", 1, 1n), row("b", 1, 2n)];
    const total = totalSeries(rows, { steps: STEPS, of, name: "all", colour: 1 });
    expect(total.values).toEqual([0, 3, 0]);
  });

  it("have no latency for steps without requests", () => {
    const point = create(LatencyPointSchema, { stepTime: timestampFromMs(DAY_MS), durationMs: { p50: 5 } });
    const series = latencySeries([point], { steps: STEPS, of: (each) => each.durationMs?.p50, name: "p50", colour: 1 });
    expect(series.values).toEqual([undefined, 5, undefined]);
  });
});
