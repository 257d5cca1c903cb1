import { median } from "../measure/statistics.ts";
import { formatTable } from "../report.ts";

/** Resident memory after a number of requests. */
export interface MemorySample {
  readonly requests: number;
  readonly kiB: number;
}

/** Resident memory of one contestant, in KiB. */
export interface MemoryResult {
  readonly contestant: string;
  /** After the warm-up, idle. */
  readonly atRestKiB: number;
  /** Under requests. */
  readonly samples: readonly MemorySample[];
  /** Increase per open stream. */
  readonly perStreamKiB: number;
  readonly streams: number;
}

/** Increase from the second to the last quarter of the samples; the first quarter is a warm-up. */
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
