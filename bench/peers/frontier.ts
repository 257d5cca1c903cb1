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
  readonly idleKiB: number;
  readonly loadedKiB: number;
  readonly restedKiB: number;
}

/**
 * The columns of the public comparison of gateways (github.com/GetBusbar/benchmarking): latency added at one connection,
 * requests per second while 99 % are answered within a bound and none fails, the first content of a stream, memory.
 */
export async function measureFrontier(
  setting: Setting & { readonly upstream: number },
  starts: readonly Start[],
  options: RoundsOptions,
): Promise<ScenarioTable> {
  const streams = await measureFirstContents(setting, starts, options);
  return withLineUp(setting, starts, async (linedUp) => {
    const idle = linedUp.map(({ server }) => residentKiB(server));
    for (const contestant of linedUp) await warmUp(setting.load, contestant, options);
    const upstream: Target = { port: setting.upstreamPort, key: NO_KEY, lastWords: LAST_WORDS };
    const direct = await sweep({ name: DIRECT, server: setting.upstream, running: upstream });
    const swept: (Omit<Measured, "restedKiB" | "idleKiB"> & { readonly problems: readonly string[] })[] = [];
    for (const contestant of linedUp) swept.push(await sweep(contestant));
    await delay(REST_MS);
    const rows = swept.map((one, at) =>
      toRow({ ...one, idleKiB: idle[at]!, restedKiB: residentKiB(linedUp[at]!.server) }, { direct, streams }),
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
      problems: [...streams.problems, ...swept.flatMap(({ problems }) => problems)],
    };
  });
}

interface FirstContents {
  /** Medians in milliseconds, by name. */
  readonly mediansMs: ReadonlyMap<string, number>;
  readonly problems: readonly string[];
}

/** Times until the first content of single streams. Servers of their own, because most have one model only. */
function measureFirstContents(
  setting: Setting,
  starts: readonly Start[],
  options: RoundsOptions,
): Promise<FirstContents> {
  const load = { ...FIRST_CONTENT, part: setting.load.part };
  return withLineUp({ ...setting, load }, starts, async (linedUp) => {
    const mediansMs = new Map<string, number>();
    const problems: string[] = [];
    const direct: Target = { port: setting.upstreamPort, key: NO_KEY, lastWords: LAST_WORDS };
    for (const contestant of linedUp) await warmUp(load, contestant, options);
    for (const { name, running } of [{ name: DIRECT, running: direct }, ...linedUp]) {
      const caller = await startCaller("load/open-loop.ts", { load, target: running });
      const { latenciesMs, wrong, firstWrong } = await askChild<OpenLoopReply>(caller, STREAMS);
      await stopChild(caller);
      mediansMs.set(name, percentile(latenciesMs, 50));
      if (wrong > 0) problems.push(`${name}: ${wrong} wrong streams, first: ${firstWrong}`);
    }
    return { mediansMs, problems };
  });
}

async function sweep({
  name,
  server,
  running,
}: Pick<LinedUp, "name" | "server"> & { readonly running: Target }): Promise<
  Omit<Measured, "restedKiB" | "idleKiB"> & { readonly problems: readonly string[] }
> {
  const contestant = await ScenarioContestant.start({ name, server, running });
  try {
    const runs: Run[] = [];
    for (const connections of SWEEP) runs.push(await contestant.run({ kind: "closed", seconds: SECONDS, connections }));
    return { name, runs, loadedKiB: residentKiB(server), problems: contestant.problems };
  } finally {
    await contestant.stop();
  }
}

function toRow(
  { name, runs, idleKiB, loadedKiB, restedKiB }: Measured,
  { direct, streams: { mediansMs } }: { readonly direct: Pick<Measured, "runs">; readonly streams: FirstContents },
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
    inUs((mediansMs.get(name) ?? Number.NaN) - mediansMs.get(DIRECT)!),
    ...[idleKiB, loadedKiB, restedKiB].map((kiB) => whole(kiB / 1024)),
  ];
}
