import type { ChildProcess } from "node:child_process";
import { setTimeout as delay } from "node:timers/promises";
import { askChild } from "../children.ts";
import type { SliceReply, SliceRequest } from "../load/generator.ts";
import { type Load, unitOf } from "../loads.ts";
import { cpuTime, processTree } from "./cpu-time.ts";
import { byKind, THREAD_KINDS, type ThreadKind, threadTimes } from "./threads.ts";
import { isSteady } from "./warm-up.ts";

/** One server under one load, with a load generator of its own that is ready. */
export interface Contestant {
  readonly name: string;
  readonly server: number;
  readonly generator: ChildProcess;
  /** At most so long it is warmed up, if that is less than for all. */
  readonly warmUpSeconds?: number;
}

/** One slice of one contestant. Shares are of one core. */
export interface Slice {
  /** Of the server's processes, per request or chunk. */
  readonly cpuUs: number;
  /** What each kind of thread has of it. */
  readonly threadUs: Readonly<Record<ThreadKind, number>>;
  readonly unitsPerSecond: number;
  readonly serverShare: number;
  /** The server was ready to run while something else had its core. */
  readonly serverWaitShare: number;
  readonly generatorShare: number;
  readonly upstreamShare: number;
  readonly elapsedMs: number;
  readonly wrong: number;
  readonly firstWrong: string | undefined;
}

/** Everything of one contestant. */
export interface Series {
  readonly name: string;
  readonly warmUp: { readonly slices: number; readonly isSteady: boolean };
  /** In the order of the rounds. */
  readonly slices: readonly Slice[];
}

/** How the rounds are run. */
export interface RoundsOptions {
  readonly rounds: number;
  readonly seconds: number;
  /** At most so long is each contestant warmed up; it ends before when the cost no longer falls. */
  readonly warmUpSeconds: number;
  /** Process id of the mock upstream. */
  readonly upstream: number;
}

/** What a server does after its answers (logs, records, collection) belongs to the slice that caused it. */
const SETTLE_MS = 20;

/** Slices of all contestants, in turns, so that a noisy minute is everybody's; who begins changes with the round. */
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

/** Slices of one contestant, until its cost no longer falls or the time is over. */
export async function warmUp(
  load: Load,
  contestant: Contestant,
  options: Omit<RoundsOptions, "rounds">,
): Promise<Series["warmUp"]> {
  const costs: number[] = [];
  const mostSeconds = Math.min(options.warmUpSeconds, contestant.warmUpSeconds ?? Infinity);
  const endMs = performance.now() + mostSeconds * 1000;
  while (!isSteady(costs)) {
    if (performance.now() >= endMs) return { slices: costs.length, isSteady: false };
    const { cpuUs } = await measureSlice(load, contestant, options);
    // Without one answer there is no cost; what is wrong is said by the rounds.
    if (!Number.isFinite(cpuUs)) return { slices: costs.length, isSteady: false };
    costs.push(cpuUs);
  }
  return { slices: costs.length, isSteady: true };
}

/** Lets a load generator run for one slice. Throws when it ends instead. */
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
