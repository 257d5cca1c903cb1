import { setTimeout as delay } from "node:timers/promises";
import { median } from "../measure/statistics.ts";
import { cpuUsOf } from "./contestant.ts";
import type { MeasureScenario } from "./measure.ts";
import { whole } from "./table.ts";

const REST_MS = 25_000;
const HALF_SECOND = { kind: "closed", seconds: 0.5, connections: 64 } as const;
/** Half seconds after a pause; the last ones are the steady state. */
const SLICES = 10;
const STEADY_SLICES = 4;
const MOST_ROUNDS = 2;

/** CPU time per request in the half seconds after a pause, in a closed loop. */
export const measurePauses: MeasureScenario = async (contestants, { rounds }) => {
  const costs = contestants.map((): number[][] => Array.from({ length: SLICES }, () => []));
  for (let round = 0; round < Math.min(rounds, MOST_ROUNDS); round++)
    for (const [who, contestant] of contestants.entries()) {
      await delay(REST_MS);
      for (const slice of costs[who]!) slice.push(cpuUsOf(await contestant.run(HALF_SECOND)));
    }
  const rows = contestants.map(({ name }, who) => {
    const medians = costs[who]!.map((slice) => median(slice));
    const steady = median(medians.slice(-STEADY_SLICES));
    const [first, second, third] = medians;
    return [name, ...[first!, second!, third!, steady].map(whole), `${(first! / steady).toFixed(2)} ×`];
  });
  return {
    title: "pauses: CPU-µs per request in the half seconds after 25 s of rest, 64 connections",
    head: ["", "first", "second", "third", "steady", "first to steady"],
    rows,
    problems: contestants.flatMap(({ problems }) => problems.splice(0)),
  };
};
