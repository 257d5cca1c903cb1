import type { ChildProcess } from "node:child_process";
import { setTimeout as delay } from "node:timers/promises";
import { askChild } from "../children.ts";
import type { SliceReply, SliceRequest } from "../load/generator.ts";
import { type Load, unitOf } from "../loads.ts";
import { cpuTime, processTree } from "./cpu-time.ts";
import { byKind, THREAD_KINDS, type ThreadKind, threadTimes } from "./threads.ts";
import { isSteady } from "./warm-up.ts";

/** One server under one load, with its own ready load generator. */
export interface Contestant {
  readonly name: string;
  readonly server: number;
  readonly generator: ChildProcess;
  /** Maximum warm-up, if shorter than the general one. */
  readonly warmUpSeconds?: number;
}

/** One slice of one contestant. Shares are of one core. */
export interface Slice {
  /** CPU time of the server's processes, per request or chunk. */
  readonly cpuUs: number;
  /** The same by kind of thread. */
  readonly threadUs: Readonly<Record<ThreadKind, number>>;
  readonly unitsPerSecond: number;
  readonly serverShare: number;
  /** Share of time in which the server was runnable while another process had its core. */
  readonly serverWaitShare: number;
  readonly generatorShare: number;
  readonly upstreamShare: number;
  readonly elapsedMs: number;
  readonly wrong: number;
  readonly firstWrong: string | undefined;
}

/** Slices of one contestant. */
export interface Series {
  readonly name: string;
  readonly warmUp: { readonly slices: number; readonly isSteady: boolean };
  /** In the order of the rounds. */
  readonly slices: readonly Slice[];
}

/** Options of the rounds. */
export interface RoundsOptions {
  readonly rounds: number;
  readonly seconds: number;
  /** Maximum warm-up of each contestant; it ends earlier when the cost no longer falls. */
  readonly warmUpSeconds: number;
  /** Process id of the mock upstream. */
  readonly upstream: number;
}

/** Pause after a slice, so that a server's later work (logs, records, collection) is charged to it. */
const SETTLE_MS = 20;

/** Runs slices of all contestants in turns, so that noise affects all; the order changes with the round. */
export async function runRounds(
  load: Load,
  contestants: readonly Contestant[],
  options: RoundsOptions,
): Promise<readonly Series[]> {
  const series: (Series & { readonly slices: Slice[] })[] = [];
  for (const contestant of contestants) {
    const { name } = contestant;
    series.push({ name, warmUp: await warmUp(load, contestant, options), slices: [] });
  }
  for (let round = 0; round < options.rounds; round++) {
    for (let turn = 0; turn < contestants.length; turn++) {
      const at = (round + turn) % contestants.length;
      series[at]!.slices.push(await measureSlice(load, contestants[at]!, options));
    }
  }
  return series;
}

/** Runs slices of one contestant, until its cost no longer falls or the time limit is reached. */
export async function warmUp(
  load: Load,
  contestant: Contestant,
  options: Omit<RoundsOptions, "rounds">,
): Promise<Series["warmUp"]> {
  const costs: number[] = [];
  let [units, seconds] = [0, 0];
  const mostSeconds = Math.min(options.warmUpSeconds, contestant.warmUpSeconds ?? Infinity);
  const endMs = performance.now() + mostSeconds * 1000;
  while (!isSteady({ costs, units, seconds })) {
    if (performance.now() >= endMs) return { slices: costs.length, isSteady: false };
    const { cpuUs, unitsPerSecond, elapsedMs } = await measureSlice(load, contestant, options);
    // Without an answer there is no cost; the rounds report the problem.
    if (!Number.isFinite(cpuUs)) return { slices: costs.length, isSteady: false };
    costs.push(cpuUs);
    seconds += elapsedMs / 1000;
    units += (unitsPerSecond * elapsedMs) / 1000;
  }
  return { slices: costs.length, isSteady: true };
}

/** Runs a load generator for one slice. Throws when it exits instead. */
export function runSlice(generator: ChildProcess, seconds: number): Promise<SliceReply> {
  return askChild<SliceReply>(generator, { seconds } satisfies SliceRequest);
}

async function measureSlice(
  load: Load,
  { server, generator }: Contestant,
  { seconds, upstream }: Pick<RoundsOptions, "seconds" | "upstream">,
): Promise<Slice> {
  const servers = processTree(server);
  const read = () => ({
    server: threadTimes(servers),
    generator: cpuTime([generator.pid!]).usedUs,
    upstream: cpuTime([upstream]).usedUs,
  });
  const before = read();
  const { answers, marks, wrong, firstWrong, elapsedMs } = await runSlice(generator, seconds);
  await delay(SETTLE_MS);
  const after = read();
  const usedUs = (kind: ThreadKind): number => after.server[kind].usedUs - before.server[kind].usedUs;
  const waitedUs = (kind: ThreadKind): number => after.server[kind].waitedUs - before.server[kind].waitedUs;
  const serverUs = sum(THREAD_KINDS.map(usedUs));
  const units = unitOf(load) === "chunk" ? marks : answers;
  const share = (us: number): number => us / (elapsedMs * 1000);
  return {
    cpuUs: serverUs / units,
    threadUs: byKind((kind) => usedUs(kind) / units),
    unitsPerSecond: (units * 1000) / elapsedMs,
    serverShare: share(serverUs),
    serverWaitShare: share(sum(THREAD_KINDS.map(waitedUs))),
    generatorShare: share(after.generator - before.generator),
    upstreamShare: share(after.upstream - before.upstream),
    elapsedMs,
    wrong,
    firstWrong,
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
