import type { LoopDelay } from "../inside/instruments.ts";
import { type Load, unitOf } from "../loads.ts";
import type { Series, Slice } from "./rounds.ts";
import { median, quiet } from "./statistics.ts";
import { byKind, type ThreadKind } from "./threads.ts";

/** Result of one contestant under one load after all rounds. Shares are of one core. */
export interface Result {
  readonly contestant: string;
  /** Why the result is invalid; undefined when it is valid. */
  readonly problem: string | undefined;
  /** CPU-microseconds of the server's processes per request or chunk: median slice, and mean of the cheapest fifth. */
  readonly cpuUs: { readonly median: number; readonly quiet: number };
  /** Ratio to the floor's cost: median of the rounds, and quiet to quiet. */
  readonly ratio: { readonly median: number; readonly quiet: number };
  /** Cost by kind of thread, in the median slices. */
  readonly threadUs: Readonly<Record<ThreadKind, number>>;
  readonly warmUp: Series["warmUp"];
  readonly unitsPerSecond: number;
  readonly serverShare: number;
  readonly serverWaitShare: number;
  readonly generatorShare: number;
  readonly upstreamShare: number;
  readonly slices: readonly Slice[];
}

/** All contestants under one load. */
export interface LoadResult {
  readonly load: string;
  readonly unit: "request" | "chunk";
  /** The contestant used as the base of the ratios. */
  readonly floor: string;
  readonly results: readonly Result[];
  /** Event loop delays of servers, where the load measures them. */
  readonly loopDelays?: readonly NamedLoopDelay[];
}

/** Event loop delay of one server. */
export interface NamedLoopDelay extends LoopDelay {
  readonly contestant: string;
}

/** Relative excess of a paced stream's duration from which it counts as behind the pace. */
const PACE_TOLERANCE = 1.25;

/** Summarises the rounds. `floor` names the contestant used as the base of the ratios. */
export function summarise(load: Load, series: readonly Series[], floor: string): LoadResult {
  const floorCosts = (series.find(({ name }) => name === floor)?.slices ?? []).map(({ cpuUs }) => cpuUs);
  const results = series.map(({ name: contestant, slices: own, warmUp }): Result => {
    const middle = (value: (slice: Slice) => number): number => median(own.map(value));
    const costs = own.map(({ cpuUs }) => cpuUs);
    return {
      contestant,
      problem: problemOf(load, own),
      cpuUs: { median: median(costs), quiet: quiet(costs) },
      ratio: {
        median: median(costs.map((cost, round) => cost / (floorCosts[round] ?? Number.NaN))),
        quiet: quiet(costs) / quiet(floorCosts),
      },
      threadUs: byKind((kind) => middle((slice) => slice.threadUs[kind])),
      warmUp,
      unitsPerSecond: middle((slice) => slice.unitsPerSecond),
      serverShare: middle((slice) => slice.serverShare),
      serverWaitShare: middle((slice) => slice.serverWaitShare),
      generatorShare: middle((slice) => slice.generatorShare),
      upstreamShare: middle((slice) => slice.upstreamShare),
      slices: own,
    };
  });
  return { load: load.name, unit: unitOf(load), floor, results };
}

/** A wrong answer or a missed pace invalidates the result, because the server did not carry the load. */
function problemOf({ paceMs }: Load, slices: readonly Slice[]): string | undefined {
  const wrong = slices.reduce((sum, slice) => sum + slice.wrong, 0);
  if (wrong > 0) return `${wrong} wrong answers, first: ${slices.find((slice) => slice.wrong > 0)?.firstWrong}`;
  const elapsedMs = median(slices.map((slice) => slice.elapsedMs));
  if (paceMs !== undefined && elapsedMs > paceMs * PACE_TOLERANCE)
    return `behind the pace: ${Math.round(elapsedMs)} ms instead of ${paceMs}`;
  return undefined;
}
