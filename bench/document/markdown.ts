import { DIRECT } from "../latency/measure.ts";
import type { LatencyResult } from "../latency/result.ts";
import type { LoadResult } from "../measure/result.ts";
import { THREAD_KINDS } from "../measure/threads.ts";
import type { Measurements } from "../measurements.ts";
import { growthKiB, type MemoryResult } from "../memory/result.ts";
import type { ScenarioTable } from "../scenarios/table.ts";
import type { StartupResult } from "../startup/measure.ts";
import { type Figure, figuresOf, isReached, resultOf } from "./figures.ts";
import { PARLEY } from "../contestants/parley.ts";

/** Conditions of a run. */
export interface Circumstances {
  /** As a day. */
  readonly date: string;
  readonly machine: readonly string[];
  /** The command line, as it was typed. */
  readonly command: string;
  readonly rounds: number;
  readonly seconds: number;
}

/** The plot's file, beside the document. */
export const PLOT_FILE = "costs.svg";

/** Formats a run as a document, from measured values only. */
export function toMarkdown(measured: Measurements, circumstances: Circumstances): string {
  const { date, machine, command, rounds, seconds } = circumstances;
  const figures = figuresOf(measured);
  const sections = [
    "# Performance",
    `Written by \`${command}\` on ${date}; [bench/README.md](../../bench/README.md) has the method; [what-remains.md](what-remains.md) explains the costs and the experiments.`,
    `## Machine\n\n${machine.map((fact) => `- ${fact}`).join("\n")}\n- ${rounds} slices of ${seconds} s for each contestant and load, in turns`,
    ...(figures.length === 0 ? [] : [`## Figures and limits\n\n${figureTable(figures)}`]),
    ...(measured.loads.length === 0 ? [] : [`## Cost\n\n![CPU time under each load](${PLOT_FILE})`]),
    ...measured.loads.map(loadSection),
    ...headed("## Other gateways", [...measured.peers.map(loadSection), ...measured.peerTables.map(scenarioSection)]),
    ...headed("## Latency", measured.latency.map(latencySection)),
    ...headed("## Rates, bursts and pauses", measured.scenarios.map(scenarioSection)),
    ...(measured.memory === undefined ? [] : [`## Memory\n\n${memoryTable(measured.memory)}`]),
    ...(measured.startup === undefined ? [] : [`## Start\n\n${startupTable(measured.startup)}`]),
    ...headed("## Formats", measured.formats.map(loadSection)),
    ...headed("## Targets", measured.targets.map(loadSection)),
    ...headed("## Growth", measured.growth.map(loadSection)),
    ...headed("## Workers", measured.workers.map(loadSection)),
  ];
  return `${sections.join("\n\n")}\n`;
}

function headed(title: string, sections: readonly string[]): readonly string[] {
  return sections.length === 0 ? [] : [title, ...sections];
}

/** A table whose first columns are texts and whose others are figures. */
export function table(head: readonly string[], rows: readonly (readonly string[])[], texts = 1): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  const rule = head.map((_, column) => (column < texts ? "---" : "---:"));
  return [head, rule, ...rows].map(line).join("\n");
}

function figureTable(figures: readonly Figure[]): string {
  const amount = (value: number, unit: string): string => {
    const digits = Math.abs(value) < 0.1 ? 3 : 2;
    return `${value.toFixed(digits)}${unit === "" ? " ×" : ` ${unit}`}`;
  };
  const rows = figures.map((figure) => [
    figure.what,
    amount(figure.value, figure.unit),
    amount(figure.limit, figure.unit),
    isReached(figure) ? "reached" : "**missed**",
  ]);
  const missed = figures.filter((figure) => !isReached(figure)).length;
  const summary = `${figures.length - missed} of ${figures.length} checked limits are met.`;
  return `${summary}\n\n${table(["figure of Parley", "measured", "at most", ""], rows)}`;
}

function loadSection(result: LoadResult): string {
  const { load, unit, floor, results, loopDelays = [] } = result;
  const rows = results.map(({ contestant, problem, cpuUs, ratio, unitsPerSecond }) =>
    problem === undefined
      ? [
          contestant,
          cpuUs.median.toFixed(1),
          cpuUs.quiet.toFixed(1),
          ratio.median.toFixed(2),
          ratio.quiet.toFixed(2),
          Math.round(unitsPerSecond).toLocaleString("en"),
        ]
      : [`${contestant}: no figure, ${problem}`, "", "", "", "", ""],
  );
  const late = loopDelays.map(
    ({ contestant, p99Ms, p999Ms }) =>
      `Event loop delay of ${contestant}: ${p99Ms.toFixed(1)} ms (p99), ${p999Ms.toFixed(1)} ms (p99.9).`,
  );
  return [
    `### ${load}`,
    ...sentences(result),
    table(["", `CPU-µs per ${unit}`, "quiet", `to ${floor}`, "quiet", `${unit}s per s`], rows),
    ...late,
  ].join("\n\n");
}

function sentences(result: LoadResult): readonly string[] {
  const [parley, floor] = [resultOf(result, PARLEY), resultOf(result, result.floor)];
  if (parley === undefined || floor === undefined) return [];
  const costs = `${parley.cpuUs.median.toFixed(1)} CPU-µs per ${result.unit} where the ${result.floor} takes ${floor.cpuUs.median.toFixed(1)}`;
  const threads = THREAD_KINDS.filter((kind) => parley.threadUs[kind] >= 0.05).map(
    (kind) => `${kind} ${parley.threadUs[kind].toFixed(1)}`,
  );
  return [
    `Parley takes ${costs}, in the median round ${parley.ratio.median.toFixed(2)} times as much. By thread: ${threads.join(", ")}.`,
  ];
}

function latencySection({ load, perSecond, results }: LatencyResult): string {
  const rows = results.map(({ contestant, problem, p50Ms, p99Ms, addedP50Ms, addedP99Ms }) =>
    problem === undefined
      ? [contestant, ...[p50Ms, p99Ms, addedP50Ms, addedP99Ms].map((ms) => ms.toFixed(2))]
      : [`${contestant}: no figure, ${problem}`, "", "", "", ""],
  );
  const pace = `Open loop, ${Math.round(perSecond).toLocaleString("en")} calls a second; ms from the scheduled time.`;
  const head = ["", "p50", "p99", `p50 over the ${DIRECT}`, `p99 over the ${DIRECT}`];
  return [`### ${load}`, pace, table(head, rows)].join("\n\n");
}

function scenarioSection({ title, head, rows }: ScenarioTable): string {
  return `### ${title}\n\n${table(head, rows)}`;
}

function memoryTable(results: readonly MemoryResult[]): string {
  const rows = results.map(({ contestant, atRestKiB, samples, perStreamKiB, streams }) => [
    contestant,
    `${(atRestKiB / 1024).toFixed(0)} MiB`,
    `${((samples.at(-1)?.kiB ?? Number.NaN) / 1024).toFixed(0)} MiB after ${(samples.at(-1)?.requests ?? 0).toLocaleString("en")} requests`,
    `${(growthKiB(samples) / 1024).toFixed(1)} MiB`,
    `${perStreamKiB.toFixed(1)} KiB, ${streams.toLocaleString("en")} open`,
  ]);
  return table(["", "idle", "under load", "growth in the second half", "per open stream"], rows);
}

function startupTable(results: readonly StartupResult[]): string {
  const rows = results.map(({ contestant, timesMs, medianMs }) => [
    contestant,
    ...[medianMs, Math.min(...timesMs), Math.max(...timesMs)].map((ms) => `${ms.toFixed(0)} ms`),
  ]);
  return table(["from the start of the process until it serves", "median", "minimum", "maximum"], rows);
}
