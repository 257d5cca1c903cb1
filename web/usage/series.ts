import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { LatencyPoint, UsageRow, UsageSums } from "../../gen/parley/console/v1/usage_pb.js";

/** One part of a chart: a value for each of its steps. */
export interface Series {
  /** What it is told apart by: names need not be different. */
  readonly id: string;
  readonly name: string;
  /** Undefined where there is no value, which for sums never is. */
  readonly values: readonly (number | undefined)[];
  /** The place of its colour: 1 to 6, 7 for all others, and failures have their own. */
  readonly colour: Colour;
  readonly isDashed?: boolean;
}

export type Colour = 1 | 2 | 3 | 4 | 5 | 6 | 7 | "failed";

/** The beginnings of all steps that a time reaches into, in Unix milliseconds. */
export function stepsOf({ sinceMs, untilMs }: { readonly sinceMs: number; readonly untilMs: number }, stepMs: number) {
  const first = Math.floor(sinceMs / stepMs) * stepMs;
  return Array.from({ length: Math.ceil((untilMs - first) / stepMs) }, (_, index) => first + index * stepMs);
}

interface GroupOptions {
  readonly steps: readonly number[];
  /** The groups in the order in which they are to be. */
  readonly order: readonly string[];
  readonly of: (sums: UsageSums) => bigint;
  readonly nameOf: (row: UsageRow) => string;
}

/** The same measure of each group, all others last; steps without a row are zero. */
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

/** One measure of everything together; steps without a row are zero. */
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

/** A measure of latency; steps in which nothing was served have no value. */
export function latencySeries(points: readonly LatencyPoint[], { steps, of, ...look }: LatencyOptions): Series {
  const byStep = new Map(points.map((point) => [point.stepTime && timestampMs(point.stepTime), of(point)]));
  return { ...look, id: look.name, values: steps.map((stepMs) => byStep.get(stepMs)) };
}
