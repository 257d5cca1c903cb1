import type { LoadResult, Result } from "./measure/result.ts";

const COLUMNS = ["", "CPU-µs", "quiet", "ratio", "quiet", "per s", "server", "waiting", "load", "upstream"] as const;

/** The results of one load as lines of a table for a terminal. */
export function formatLoad({ load, unit, floor, results }: LoadResult): string {
  const rows = [COLUMNS, ...results.map(toRow)];
  const widths = COLUMNS.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const lines = rows.map((row) =>
    row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!))).join("  "),
  );
  const problems = results.flatMap(({ contestant, problem }) =>
    problem === undefined ? [] : [`  ! ${contestant}: ${problem}; this is not a figure`],
  );
  return [`${load}: CPU-µs per ${unit}, ratio to the ${floor}`, ...lines.map((line) => `  ${line}`), ...problems].join(
    "\n",
  );
}

function toRow({ contestant, problem, cpuUs, ratio, unitsPerSecond, ...shares }: Result): readonly string[] {
  const percent = (share: number): string => `${Math.round(share * 100)} %`;
  return [
    problem === undefined ? contestant : `${contestant} !`,
    cpuUs.median.toFixed(1),
    cpuUs.quiet.toFixed(1),
    ratio.median.toFixed(2),
    ratio.quiet.toFixed(2),
    Math.round(unitsPerSecond).toLocaleString("en"),
    percent(shares.serverShare),
    percent(shares.serverWaitShare),
    percent(shares.generatorShare),
    percent(shares.upstreamShare),
  ];
}
