import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterEach, describe, expect, it, vi } from "vitest";
import { LatencyPointSchema, UsageRowSchema } from "../../gen/parley/console/v1/usage_pb.js";
import { groupSeries, latencySeries, totalSeries } from "../../web/usage/series.ts";
import { endOfStep, stepFor, stepsOf } from "../../web/usage/steps.ts";
import { inWholeUnits, periodBefore, periodOf, readPeriod } from "../../web/usage/period.ts";

const DAY_MS = 86_400_000;
const STEPS = [0, DAY_MS, 2 * DAY_MS];

const row = (group: string, day: number, completions: bigint) => {
  const init: MessageInitShape<typeof UsageRowSchema> = { group, stepTime: timestampFromMs(day * DAY_MS) };
  return create(UsageRowSchema, { ...init, sums: { completions } });
};
const of = ({ completions }: { readonly completions: bigint }): bigint => completions;

describe("chart series", () => {
  it("have every step that overlaps the period", () => {
    // Days begin at midnight in the time zone of the tests.
    const midnight = new Date(2026, 10, 3).getTime();
    const days = [midnight, new Date(2026, 10, 4).getTime(), new Date(2026, 10, 5).getTime()];
    expect(stepsOf({ sinceMs: midnight + 5, untilMs: days[2]! + 1 }, { lengthMs: DAY_MS })).toEqual(days);
    expect(stepsOf({ sinceMs: midnight, untilMs: days[2]! }, { lengthMs: DAY_MS })).toEqual(days.slice(0, 2));
    expect(days.map((dayMs) => endOfStep(dayMs, { lengthMs: DAY_MS })).slice(0, 2)).toEqual(days.slice(1));
    expect(stepsOf({ sinceMs: 61_000, untilMs: 180_000 }, { lengthMs: 60_000 })).toEqual([60_000, 120_000]);
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

const MINUTE_MS = 60_000;
const NOW_MS = Date.UTC(2026, 10, 27, 7, 33);

afterEach(() => void vi.unstubAllEnvs());

describe("the period of the usage page", () => {
  it.each([
    ["15m", "per minute", 15],
    ["1h", "per minute", 60],
    ["6h", "per 5 minutes", 72],
    ["24h", "per hour", 24],
    ["7d", "per day", 7],
    ["1y", "per day", 365],
  ] as const)("of the last %s is shown %s, up to now", (range, each, count) => {
    const period = periodOf(range, NOW_MS);
    const step = stepFor(period.untilMs - period.sinceMs, { hasMinutes: true });
    expect([step.each, stepsOf(period, step).length]).toEqual([each, count]);
    expect(period.untilMs).toBeGreaterThan(NOW_MS);
    expect(period.untilMs).toBeLessThanOrEqual(NOW_MS + step.lengthMs);
  });

  it("has minutes only within the last 48 hours, and is compared with what is known", () => {
    const hoursAgo = (hours: number) => ({
      sinceMs: NOW_MS - hours * 60 * MINUTE_MS - 1,
      untilMs: NOW_MS - (hours - 1) * 60 * MINUTE_MS,
    });
    const at = { nowMs: NOW_MS, shiftMs: undefined };
    expect(inWholeUnits(hoursAgo(2), at)).toMatchObject({ hasMinutes: true, isComparable: true });
    expect(inWholeUnits(hoursAgo(2), at).sinceMs % MINUTE_MS).toBe(0);
    expect(inWholeUnits(hoursAgo(47), at)).toMatchObject({ hasMinutes: true, isComparable: false });
    const old = inWholeUnits(hoursAgo(49), at);
    expect(old).toMatchObject({ hasMinutes: false, isComparable: true });
    expect([old.sinceMs % (60 * MINUTE_MS), old.untilMs - old.sinceMs]).toEqual([0, 120 * MINUTE_MS]);
  });

  it("is compared with days of the calendar where clocks change, and otherwise with the time just before", () => {
    vi.stubEnv("TZ", "Europe/Berlin");
    // The clocks of Berlin go forward on March 29, 2026.
    const april = { sinceMs: Date.parse("2026-04-01T00:00+02:00"), untilMs: Date.parse("2026-05-01T00:00+02:00") };
    const before = periodBefore(april, 30 * DAY_MS);
    expect(before).toEqual({
      sinceMs: Date.parse("2026-03-02T00:00+01:00"),
      untilMs: Date.parse("2026-04-01T00:00+02:00"),
    });
    expect(stepsOf(before, { lengthMs: DAY_MS })).toHaveLength(30);
    const hour = { sinceMs: NOW_MS - 60 * MINUTE_MS, untilMs: NOW_MS };
    expect(periodBefore(hour, 60 * MINUTE_MS)).toEqual({ sinceMs: NOW_MS - 120 * MINUTE_MS, untilMs: hour.sinceMs });
  });

  it("of the reader's own ends after it begins, and is of a year at most", () => {
    expect(readPeriod("2026-11-01T00:00Z", "2026-11-02T00:00Z")).toEqual({
      sinceMs: Date.UTC(2026, 10, 1),
      untilMs: Date.UTC(2026, 10, 2),
    });
    for (const [since, until] of [
      ["2026-11-02T00:00Z", "2026-11-01T00:00Z"],
      ["2024-11-01T00:00Z", "2026-11-01T00:00Z"],
      ["", ""],
      ["yesterday", "today"],
    ] as const)
      expect(readPeriod(since, until)).toBeUndefined();
  });
});
