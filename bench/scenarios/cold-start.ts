import { stopChild } from "../children.ts";
import { type Start } from "../contestants/line-up.ts";
import { PARLEY, startParley, startParleyInterval } from "../contestants/parley.ts";
import { startByteRelay } from "../contestants/floors.ts";
import type { RunningServer, Setting } from "../contestants/server.ts";
import { median } from "../measure/statistics.ts";
import { cpuUsOf, ScenarioContestant } from "./contestant.ts";
import type { ScenarioOptions } from "./measure.ts";
import { type ScenarioTable, whole } from "./table.ts";

const SECOND = { kind: "closed", seconds: 1, connections: 64 } as const;
/** Seconds after a start; the last ones are the steady state. */
const SECONDS = 12;
const STEADY_SECONDS = 4;
const MOST_ROUNDS = 2;

/** Parley with V8's middle compiler, which its launcher turns off: more memory, fewer seconds until code is compiled. */
async function startWithMaglev(setting: Setting): Promise<RunningServer> {
  return { ...(await startParley({ ...setting, nodeOptions: ["--maglev"] })), name: `${PARLEY}, --maglev` };
}

const STARTS: readonly Start[] = [startByteRelay, startParley, startParleyInterval, startWithMaglev];

/** CPU time per request in the seconds after a start, in a closed loop. Each process is started alone. */
export async function measureColdStarts(setting: Setting, { rounds }: ScenarioOptions): Promise<ScenarioTable> {
  const problems: string[] = [];
  const costs = new Map<string, number[][]>();
  for (let round = 0; round < Math.min(rounds, MOST_ROUNDS); round++)
    for (const start of STARTS) {
      const running = (await start(setting))!;
      const { name, process } = running;
      const contestant = await ScenarioContestant.start({ name, server: process.pid!, running });
      const seconds = costs.get(name) ?? Array.from({ length: SECONDS }, (): number[] => []);
      costs.set(name, seconds);
      try {
        for (const second of seconds) second.push(cpuUsOf(await contestant.run(SECOND)));
      } finally {
        await contestant.stop();
        await stopChild(process);
      }
      problems.push(...contestant.problems);
    }
  const rows = [...costs].map(([name, seconds]) => {
    const medians = seconds.map((second) => median(second));
    const steady = median(medians.slice(-STEADY_SECONDS));
    const [first, second, third] = medians;
    return [name, ...[first!, second!, third!, steady].map(whole), `${(first! / steady).toFixed(2)} ×`];
  });
  return {
    title: "cold start: CPU-µs per request in the seconds after the start, 64 connections",
    head: ["", "first", "second", "third", "steady", "first to steady"],
    rows,
    problems,
  };
}
