import { median } from "../measure/statistics.ts";
import { formatTable } from "../report.ts";

/** A look at the memory in RAM after so many requests. */
export interface MemorySample {
  readonly requests: number;
  readonly kiB: number;
}

/** Memory of one contestant in RAM, in KiB. */
export interface MemoryResult {
  readonly contestant: string;
  /** After the warm-up, with nothing to do. */
  readonly atRestKiB: number;
  /** While requests go on. */
  readonly samples: readonly MemorySample[];
  /** Difference that open streams make, per stream. */
  readonly perStreamKiB: number;
  readonly streams: number;
}

/** How much more there is in the last quarter of the samples than in the second: the first is still a warm-up. */
export function growthKiB(samples: readonly MemorySample[]): number {
  const quarter = (index: number): number => {
    const [from, to] = [index, index + 1].map((edge) => Math.floor((edge * samples.length) / 4));
    return median(samples.slice(from, to).map(({ kiB }) => kiB));
  };
  return quarter(3) - quarter(1);
}

/** Memory as a table for a terminal. */
export function formatMemory(results: readonly MemoryResult[]): string {
  const rows = results.map(({ contestant, atRestKiB, samples, perStreamKiB, streams }) => [
    contestant,
    `${(atRestKiB / 1024).toFixed(0)} MiB`,
    `${((samples.at(-1)?.kiB ?? Number.NaN) / 1024).toFixed(0)} MiB`,
    (samples.at(-1)?.requests ?? 0).toLocaleString("en"),
    `${(growthKiB(samples) / 1024).toFixed(1)} MiB`,
    `${perStreamKiB.toFixed(1)} KiB`,
    streams.toLocaleString("en"),
  ]);
  const head = [
    "",
    "at rest",
    "at work",
    "after requests",
    "growth since the 2nd quarter",
    "per open stream",
    "streams",
  ];
  return ["memory in RAM", ...formatTable([head, ...rows])].join("\n");
}
