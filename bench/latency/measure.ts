import type { ChildProcess } from "node:child_process";
import { askChild, stopChild } from "../children.ts";
import { LAST_WORDS, NO_KEY, startByteRelay } from "../contestants/floors.ts";
import { type LinedUp, startCaller, withLineUp } from "../contestants/line-up.ts";
import { startParley } from "../contestants/parley.ts";
import type { Setting } from "../contestants/server.ts";
import type { Target } from "../load/caller.ts";
import type { OpenLoopReply, OpenLoopRequest } from "../load/open-loop.ts";
import type { Load } from "../loads.ts";
import { type RoundsOptions, runSlice, warmUp } from "../measure/rounds.ts";
import { median } from "../measure/statistics.ts";
import { type LatencyResult, type LatencySlice, summariseLatency } from "./result.ts";

/** Name of the direct call in tables. */
export const DIRECT = "direct call";

/** Share of the capacity: busy, but without a queue. */
const SHARE_OF_CAPACITY = 1 / 3;
/** Fewer rounds, because slices are longer. */
const MOST_ROUNDS = 4;
/** Long enough for a 99th percentile. */
const LEAST_SECONDS = 1;

/** Several slices, because one may be an outlier. */
const CAPACITY_SLICES = 3;

interface Caller {
  readonly name: string;
  readonly process: ChildProcess;
  readonly slices: LatencySlice[];
}

/**
 * Latency at a third of Parley's capacity: direct calls of the upstream, through the byte relay, and through Parley, in
 * turns.
 */
export async function measureLatency(setting: Setting, options: RoundsOptions): Promise<LatencyResult> {
  const { load, upstreamPort } = setting;
  return withLineUp(setting, [startByteRelay, startParley], async (contestants) => {
    for (const contestant of contestants) await warmUp(load, contestant, options);
    const perSecond = (await capacityOf(contestants.at(-1)!, options)) * SHARE_OF_CAPACITY;
    const callers: Caller[] = [];
    try {
      const direct = { port: upstreamPort, key: NO_KEY, lastWords: LAST_WORDS };
      callers.push(await callerOf(DIRECT, load, direct));
      for (const { name, running } of contestants) callers.push(await callerOf(name, load, running));
      const request = { seconds: Math.max(options.seconds, LEAST_SECONDS), perSecond };
      // The first round is a warm-up: connections are opened, and the direct call's own path is cold.
      await runRound(callers, request);
      for (const { slices } of callers) slices.length = 0;
      for (let round = 0; round < Math.min(options.rounds, MOST_ROUNDS); round++) await runRound(callers, request);
    } finally {
      await Promise.all(callers.map(({ process }) => stopChild(process)));
    }
    return { load: load.name, perSecond, results: summariseLatency(callers) };
  });
}

async function capacityOf({ generator }: LinedUp, { seconds }: RoundsOptions): Promise<number> {
  const capacities: number[] = [];
  for (let slice = 0; slice < CAPACITY_SLICES; slice++) {
    const { answers, elapsedMs, firstWrong } = await runSlice(generator, Math.max(seconds, LEAST_SECONDS));
    if (answers === 0) throw new Error(`Parley gave no right answer to find its capacity by: ${firstWrong}`);
    capacities.push((answers * 1000) / elapsedMs);
  }
  return median(capacities);
}

async function callerOf(name: string, load: Load, target: Target): Promise<Caller> {
  return { name, process: await startCaller("load/open-loop.ts", { load, target }), slices: [] };
}

async function runRound(callers: readonly Caller[], request: OpenLoopRequest): Promise<void> {
  for (const { process, slices } of callers) slices.push(await askChild<OpenLoopReply>(process, request));
}
