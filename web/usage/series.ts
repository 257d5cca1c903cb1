import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { LatencyPoint, UsageRow, UsageSums } from "../../gen/parley/console/v1/usage_pb.js";

/** One series of a chart, with a value per step. */
export interface Series {
  /** Unique ID. Names may repeat. */
  readonly id: string;
  readonly name: string;
  /** Undefined for a step without a value; sums have a value for every step. */
  readonly values: readonly (number | undefined)[];
  /** Colour index: 1 to 6, 7 for all others, or `failed`. */
  readonly colour: Colour;
  readonly isDashed?: boolean;
}

export type Colour = 1 | 2 | 3 | 4 | 5 | 6 | 7 | "failed";

interface GroupOptions {
  readonly steps: readonly number[];
  /** Display order of the groups. */
  readonly order: readonly string[];
  readonly of: (sums: UsageSums) => bigint;
  readonly nameOf: (row: UsageRow) => string;
}

/** Returns a series per group, all others last. Steps without a row are zero. */
export function groupSeries(rows: readonly UsageRow[], { steps, order, of, nameOf }: GroupOptions): Series[] {
  const place = (group: string): number => (group === "" ? Infinity : order.indexOf(group));
  const groups = [...Map.groupBy(rows, ({ group }) => group)].toSorted(([a], [b]) => place(a) - place(b));
  return groups.map(([group, ofGroup], index) => ({
    ...totalSeries(ofGroup, { steps, of, name: nameOf(ofGroup[0]!), colour: 7 }),
    id: group,
    ...(group !== "" && { colour: Math.min(index + 1, 7) as Colour }),
  }));
}

interface TotalOptions {
  readonly steps: readonly number[];
  readonly of: (sums: UsageSums) => bigint;
  readonly name: string;
  readonly colour: Colour;
}

/** Returns the series of the total. Steps without a row are zero. */
export function totalSeries(rows: readonly UsageRow[], { steps, of, name, colour }: TotalOptions): Series {
  const byStep = new Map<number, number>();
  for (const { stepTime, sums } of rows) {
    if (stepTime === undefined || sums === undefined) continue;
    const atMs = timestampMs(stepTime);
    byStep.set(atMs, (byStep.get(atMs) ?? 0) + Number(of(sums)));
  }
  return { id: name, name, colour, values: steps.map((stepMs) => byStep.get(stepMs) ?? 0) };
}

interface LatencyOptions extends Omit<Series, "values" | "id"> {
  readonly steps: readonly number[];
  readonly of: (point: LatencyPoint) => number | undefined;
}

/** Returns a latency series. Steps without successful requests have no value. */
export function latencySeries(points: readonly LatencyPoint[], { steps, of, ...look }: LatencyOptions): Series {
  const byStep = new Map(points.map((point) => [point.stepTime && timestampMs(point.stepTime), of(point)]));
  return { ...look, id: look.name, values: steps.map((stepMs) => byStep.get(stepMs)) };
}

/** Returns the sum of the values of a series. */
export function sum(values: readonly (number | undefined)[]): number {
  return values.reduce<number>((total, value = 0) => total + value, 0);
}
