import { PARLEY } from "./contestants/parley.ts";
import type { LoadResult, NamedLoopDelay, Result } from "./measure/result.ts";
import { THREAD_KINDS } from "./measure/threads.ts";

const COLUMNS = ["", "CPU-µs", "quiet", "ratio", "quiet", "per s", "server", "waiting", "load", "upstream"] as const;

/** Contestants with costs by thread: Parley, and two versions of it. */
const SHOWN = new RegExp(`^(?:${PARLEY}|before|after)`);

/** Rows as indented lines of a table for a terminal; the first row is its head. */
export function formatTable(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) => {
    const cells = row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!)));
    return `  ${cells.join("  ")}`;
  });
}

/** The results of one load as lines of a table for a terminal. */
export function formatLoad({ load, unit, floor, results, loopDelays = [] }: LoadResult): string {
  const problems = results.flatMap(({ contestant, problem }) =>
    problem === undefined ? [] : [`  ! ${contestant}: ${problem}; this is not a figure`],
  );
  return [
    `${load}: CPU-µs per ${unit}, ratio to the ${floor}`,
    ...formatTable([COLUMNS, ...results.map(toRow)]),
    ...results.filter(({ contestant }) => SHOWN.test(contestant)).map(formatThreads),
    ...formatWarmUps(results.filter(({ warmUp }) => !warmUp.isSteady)),
    ...loopDelays.map(formatLoopDelay),
    ...problems,
  ].join("\n");
}

/** Parley's cost by thread; V8's threads are the compiler's and the garbage collector's. */
function formatThreads({ contestant, threadUs }: Result): string {
  const parts = THREAD_KINDS.filter((kind) => threadUs[kind] >= 0.05).map(
    (kind) => `${kind} ${threadUs[kind].toFixed(1)}`,
  );
  return `  ${contestant} by thread: ${parts.join(", ")}`;
}

/** `unsteady` are contestants whose cost was still falling after the warm-up. */
function formatWarmUps(unsteady: readonly Result[]): readonly string[] {
  if (unsteady.length === 0) return [];
  const names = unsteady.map(({ contestant, warmUp }) => `${contestant} (${warmUp.slices} slices)`);
  return [`  the warm-up ended before the cost was steady: ${names.join(", ")}`];
}

function formatLoopDelay({ contestant, p50Ms, p99Ms, p999Ms, maxMs }: NamedLoopDelay): string {
  const [p50, p99, p999, max] = [p50Ms, p99Ms, p999Ms, maxMs].map((ms) => ms.toFixed(1));
  return `  ${contestant}: event loop late by p50 ${p50}, p99 ${p99}, p99.9 ${p999}, at most ${max} ms`;
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
