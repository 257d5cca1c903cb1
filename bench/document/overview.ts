import { BYTE_RELAY } from "../contestants/floors.ts";
import type { LoadResult } from "../measure/result.ts";
import type { Measurements } from "../measurements.ts";
import { DUTIES } from "../peers/peers.ts";
import { OPEN_LOOPS_BESIDE_PEERS } from "../peers/measure.ts";
import type { ScenarioTable } from "../scenarios/table.ts";
import { type Circumstances, table } from "./markdown.ts";

const BEGIN = "<!-- Written by `npm run bench -- --write`: -->";
const END = "<!-- until here. -->";

/** Replaces the part of a README that compares gateways. Unchanged where none were measured, or if there is no such part. */
export function replaceOverview(readme: string, measured: Measurements, circumstances: Circumstances): string {
  const [begin, end] = [readme.indexOf(BEGIN), readme.indexOf(END)];
  if (begin === -1 || end < begin || measured.peers.length === 0) return readme;
  return `${readme.slice(0, begin)}${BEGIN}\n\n${toOverview(measured, circumstances)}\n\n${readme.slice(end)}`;
}

function toOverview({ peers, peerTables }: Measurements, { date, machine }: Circumstances): string {
  const loops = peerTables.find(({ title }) => title === OPEN_LOOPS_BESIDE_PEERS);
  return [
    `CPU time of gateways in one run (${date}, ${machine.join(", ")}):`,
    costTable(peers),
    ...(loops === undefined ? [] : ["Latencies at fixed rates, p50 and p99 in ms:", latencyTable(loops)]),
  ].join("\n\n");
}

function costTable(loads: readonly LoadResult[]): string {
  const names = loads[0]!.results.map(({ contestant }) => contestant);
  const costs = loads.map(({ load, unit }) => `${load.replace(/, beside.*/, "")}, CPU-µs per ${unit}`);
  const rows = names.map((name) => [name, dutiesOf(name), ...loads.map((load) => costOf(load, name))]);
  return table(["", "keys; limits; record", ...costs], rows, 2);
}

function costOf({ results }: LoadResult, name: string): string {
  const result = results.find(({ contestant }) => contestant === name);
  return result === undefined || result.problem !== undefined ? "" : result.cpuUs.median.toFixed(0);
}

function dutiesOf(name: string): string {
  if (name === BYTE_RELAY) return "none";
  const duties = DUTIES.find((each) => each.name === name);
  return duties === undefined ? "" : `${duties.keys}; ${duties.limits}; ${duties.record}`;
}

function latencyTable({ rows }: ScenarioTable): string {
  const rates = new Map<string, Map<string, string>>();
  for (const [label = "", p50 = "", p99 = ""] of rows) {
    const [rate, name] = [label.slice(0, label.indexOf(": ")), label.slice(label.indexOf(": ") + 2)];
    rates.set(rate, (rates.get(rate) ?? new Map<string, string>()).set(name, `${p50}, ${p99}`));
  }
  const names = [...(rates.values().next().value ?? new Map<string, string>()).keys()];
  return table(
    ["", ...rates.keys()],
    names.map((name) => [name, ...[...rates.values()].map((of) => of.get(name) ?? "")]),
  );
}
