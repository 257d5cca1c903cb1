import { median, percentile } from "../measure/statistics.ts";
import { formatTable } from "../report.ts";

/** One slice of one contestant. */
export interface LatencySlice {
  readonly latenciesMs: readonly number[];
  readonly wrong: number;
  readonly firstWrong: string | undefined;
}

/** One contestant's latency: medians over the rounds of each slice's percentiles. */
export interface ContestantLatency {
  readonly contestant: string;
  /** Why the result is invalid; undefined when it is valid. */
  readonly problem: string | undefined;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Difference to the direct call in the same round. */
  readonly addedP50Ms: number;
  readonly addedP99Ms: number;
}

/** The latencies under one load. */
export interface LatencyResult {
  readonly load: string;
  /** Calls per second: a third of Parley's capacity. */
  readonly perSecond: number;
  readonly results: readonly ContestantLatency[];
}

/** Summarises the rounds. The first contestant is the direct call. */
export function summariseLatency(
  contestants: readonly { readonly name: string; readonly slices: readonly LatencySlice[] }[],
): readonly ContestantLatency[] {
  const rounds = contestants.map(({ slices }) =>
    slices.map(({ latenciesMs }) => ({ p50: percentile(latenciesMs, 50), p99: percentile(latenciesMs, 99) })),
  );
  return contestants.map(({ name, slices }, index): ContestantLatency => {
    const own = rounds[index]!;
    const wrong = slices.reduce((sum, slice) => sum + slice.wrong, 0);
    const first = slices.find((slice) => slice.wrong > 0)?.firstWrong;
    return {
      contestant: name,
      problem: wrong === 0 ? undefined : `${wrong} wrong answers, first: ${first}`,
      p50Ms: median(own.map(({ p50 }) => p50)),
      p99Ms: median(own.map(({ p99 }) => p99)),
      addedP50Ms: median(own.map(({ p50 }, round) => p50 - rounds[0]![round]!.p50)),
      addedP99Ms: median(own.map(({ p99 }, round) => p99 - rounds[0]![round]!.p99)),
    };
  });
}

/** The latencies under one load as a table for a terminal. */
export function formatLatency({ load, perSecond, results }: LatencyResult): string {
  const rows = results.map(({ contestant, problem, p50Ms, p99Ms, addedP50Ms, addedP99Ms }) => [
    problem === undefined ? contestant : `${contestant} !`,
    ...[p50Ms, p99Ms, addedP50Ms, addedP99Ms].map((ms) => ms.toFixed(2)),
  ]);
  const problems = results.flatMap(({ contestant, problem }) =>
    problem === undefined ? [] : [`  ! ${contestant}: ${problem}; this is not a figure`],
  );
  return [
    `${load}, open loop, ${Math.round(perSecond).toLocaleString("en")} a second: ms from the intended moment`,
    ...formatTable([["", "p50", "p99", "added p50", "added p99"], ...rows]),
    ...problems,
  ].join("\n");
}
