import { setTimeout as delay } from "node:timers/promises";
import { askChild, stopChild } from "../children.ts";
import { LAST_WORDS, NO_KEY } from "../contestants/floors.ts";
import { type LinedUp, type Start, startCaller, withLineUp } from "../contestants/line-up.ts";
import type { Setting } from "../contestants/server.ts";
import { DIRECT } from "../latency/measure.ts";
import type { Target } from "../load/caller.ts";
import type { OpenLoopReply, OpenLoopRequest } from "../load/open-loop.ts";
import { FIRST_CONTENT } from "../loads.ts";
import { residentKiB } from "../measure/resident.ts";
import { type RoundsOptions, warmUp } from "../measure/rounds.ts";
import { percentile } from "../measure/statistics.ts";
import { rateOf, type Run, ScenarioContestant } from "../scenarios/contestant.ts";
import { type ScenarioTable, whole } from "../scenarios/table.ts";

/** Connections of the closed loops. */
const SWEEP = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512] as const;
const SECONDS = 1;
/** Bounds of the 99th percentile; the last row of rates has none. */
const BOUNDS_MS = [1, 5, 10, 50, 100, Infinity] as const;
/** Single streams, for the first content. */
const STREAMS: OpenLoopRequest = { seconds: 3, perSecond: 20 };
/** After the load, before the memory is read again. */
const REST_MS = 20_000;

interface Measured {
  readonly name: string;
  readonly runs: readonly Run[];
  readonly firstContentMs: number;
  readonly idleKiB: number;
  readonly loadedKiB: number;
  readonly restedKiB: number;
}

/**
 * The columns of the public comparison of gateways (github.com/GetBusbar/benchmarking): latency added at one connection,
 * requests per second while 99 % are answered within a bound and none fails, the first content of a stream, memory.
 */
export function measureFrontier(
  setting: Setting & { readonly upstream: number },
  starts: readonly Start[],
  options: RoundsOptions,
): Promise<ScenarioTable> {
  return withLineUp(setting, starts, async (linedUp) => {
    const idle = linedUp.map(({ server }) => residentKiB(server));
    for (const contestant of linedUp) await warmUp(setting.load, contestant, options);
    const upstream: Target = { port: setting.upstreamPort, key: NO_KEY, lastWords: LAST_WORDS };
    const direct = await sweep({ name: DIRECT, server: setting.upstream, running: upstream }, setting);
    const swept: (Omit<Measured, "restedKiB" | "idleKiB"> & { readonly problems: readonly string[] })[] = [];
    for (const contestant of linedUp) swept.push(await sweep(contestant, setting));
    await delay(REST_MS);
    const rows = swept.map((one, at) =>
      toRow({ ...one, idleKiB: idle[at]!, restedKiB: residentKiB(linedUp[at]!.server) }, direct),
    );
    return {
      title: `columns of the public comparison, ${SWEEP[0]} to ${SWEEP.at(-1)} connections`,
      head: [
        "",
        "added p99, 1 connection, µs",
        ...BOUNDS_MS.map((ms) => (ms === Infinity ? "requests/s, any p99" : `p99 ≤ ${ms} ms`)),
        "added first content, µs",
        "idle MiB",
        "after load MiB",
        `${REST_MS / 1000} s later MiB`,
      ],
      rows,
      problems: swept.flatMap(({ problems }) => problems),
    };
  });
}

async function sweep(
  { name, server, running }: Pick<LinedUp, "name" | "server"> & { readonly running: Target },
  { load }: Setting,
): Promise<Omit<Measured, "restedKiB" | "idleKiB"> & { readonly problems: readonly string[] }> {
  const contestant = await ScenarioContestant.start({ name, server, running });
  const streams = await startCaller("load/open-loop.ts", {
    load: { ...FIRST_CONTENT, part: load.part },
    target: running,
  });
  try {
    const runs: Run[] = [];
    for (const connections of SWEEP) runs.push(await contestant.run({ kind: "closed", seconds: SECONDS, connections }));
    const loadedKiB = residentKiB(server);
    const { latenciesMs, wrong, firstWrong } = await askChild<OpenLoopReply>(streams, STREAMS);
    const problems = [
      ...contestant.problems,
      ...(wrong > 0 ? [`${name}: ${wrong} wrong streams, first: ${firstWrong}`] : []),
    ];
    return { name, runs, firstContentMs: percentile(latenciesMs, 50), loadedKiB, problems };
  } finally {
    await Promise.all([contestant.stop(), stopChild(streams)]);
  }
}

function toRow(
  { name, runs, firstContentMs, idleKiB, loadedKiB, restedKiB }: Measured,
  direct: Pick<Measured, "runs" | "firstContentMs">,
): readonly string[] {
  const inUs = (ms: number): string => whole(ms * 1000);
  const best = (boundMs: number): string => {
    const within = runs.filter(({ p99Ms, wrong }) => p99Ms <= boundMs && wrong === 0);
    return within.length === 0 ? "none" : whole(Math.max(...within.map(rateOf)));
  };
  return [
    name,
    inUs(runs[0]!.p99Ms - direct.runs[0]!.p99Ms),
    ...BOUNDS_MS.map(best),
    inUs(firstContentMs - direct.firstContentMs),
    ...[idleKiB, loadedKiB, restedKiB].map((kiB) => whole(kiB / 1024)),
  ];
}
