import type { LoopDelay } from "../inside/instruments.ts";
import { type Load, unitOf } from "../loads.ts";
import type { Series, Slice } from "./rounds.ts";
import { median, quiet } from "./statistics.ts";
import { byKind, type ThreadKind } from "./threads.ts";

/** What is known of one contestant under one load after all rounds. Shares are of one core. */
export interface Result {
  readonly contestant: string;
  /** Why this is not a figure; undefined when it is one. */
  readonly problem: string | undefined;
  /** CPU-microseconds of the server's processes per request or chunk: of the median slice, and of the quiet ones. */
  readonly cpuUs: { readonly median: number; readonly quiet: number };
  /** To the floor's cost: median of the rounds, and quiet to quiet. */
  readonly ratio: { readonly median: number; readonly quiet: number };
  /** Of the median slices, what each kind of thread has of the cost. */
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
  /** The contestant that the ratios are to. */
  readonly floor: string;
  readonly results: readonly Result[];
  /** How late the event loops of servers were, where the load asks for it. */
  readonly loopDelays?: readonly NamedLoopDelay[];
}

/** How late the event loop of one server was. */
export interface NamedLoopDelay extends LoopDelay {
  readonly contestant: string;
}

/** A paced stream that takes this much longer than its pace was not carried at that pace. */
const PACE_TOLERANCE = 1.25;

/** Sums up the rounds. `floor` names the contestant that the ratios are to. */
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

/** One wrong answer, or a pace that is not kept, and the cost is of something else than the load. */
function problemOf({ paceMs }: Load, slices: readonly Slice[]): string | undefined {
  const wrong = slices.reduce((sum, slice) => sum + slice.wrong, 0);
  if (wrong > 0) return `${wrong} wrong answers, first: ${slices.find((slice) => slice.wrong > 0)?.firstWrong}`;
  const elapsedMs = median(slices.map((slice) => slice.elapsedMs));
  if (paceMs !== undefined && elapsedMs > paceMs * PACE_TOLERANCE)
    return `behind the pace: ${Math.round(elapsedMs)} ms instead of ${paceMs}`;
  return undefined;
}
