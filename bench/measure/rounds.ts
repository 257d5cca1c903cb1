import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import type { SliceReply, SliceRequest } from "../load/generator.ts";
import { type Load, unitOf } from "../loads.ts";
import { cpuTime, type CpuTime, processTree } from "./cpu-time.ts";

/** One server under one load, with a load generator of its own that is ready. */
export interface Contestant {
  readonly name: string;
  readonly server: number;
  readonly generator: ChildProcess;
}

/** One slice of one contestant. Shares are of one core. */
export interface Slice {
  /** Of the server's processes, per request or chunk. */
  readonly cpuUs: number;
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

/** How the rounds are run. */
export interface RoundsOptions {
  readonly rounds: number;
  readonly seconds: number;
  readonly warmUpSeconds: number;
  /** Process id of the mock upstream. */
  readonly upstream: number;
}

/** What a server does after its answers (logs, records, collection) belongs to the slice that caused it. */
const SETTLE_MS = 20;

/**
 * Slices of all contestants, in turns, so that a noisy minute is everybody's; who begins changes with the round. Each
 * contestant's slices are in the order of the rounds.
 */
export async function runRounds(
  load: Load,
  contestants: readonly Contestant[],
  options: RoundsOptions,
): Promise<ReadonlyMap<string, readonly Slice[]>> {
  const slices = new Map(contestants.map(({ name }) => [name, [] as Slice[]]));
  for (const { generator } of contestants) {
    for (let warmed = 0; warmed < options.warmUpSeconds; warmed += options.seconds)
      await runSlice(generator, options.seconds);
  }
  for (let round = 0; round < options.rounds; round++) {
    for (let turn = 0; turn < contestants.length; turn++) {
      const contestant = contestants[(round + turn) % contestants.length]!;
      slices.get(contestant.name)!.push(await measureSlice(load, contestant, options));
    }
  }
  return slices;
}

/** Lets a load generator run for one slice. Throws when it ends instead. */
export async function runSlice(generator: ChildProcess, seconds: number): Promise<SliceReply> {
  const ended = new AbortController();
  const abort = (): void => ended.abort(new Error("the load generator ended"));
  generator.once("exit", abort);
  try {
    const reply = once(generator, "message", { signal: ended.signal });
    generator.send({ seconds } satisfies SliceRequest);
    return ((await reply) as [SliceReply])[0];
  } finally {
    generator.off("exit", abort);
  }
}

async function measureSlice(
  load: Load,
  { server, generator }: Contestant,
  { seconds, upstream }: RoundsOptions,
): Promise<Slice> {
  const servers = processTree(server);
  const read = (): readonly CpuTime[] => [servers, [generator.pid!], [upstream]].map(cpuTime);
  const before = read();
  const { answers, marks, wrong, firstWrong, elapsedMs } = await runSlice(generator, seconds);
  await delay(SETTLE_MS);
  const after = read();
  const [serverUs = 0, generatorUs = 0, upstreamUs = 0] = after.map(({ usedUs }, at) => usedUs - before[at]!.usedUs);
  const units = unitOf(load) === "chunk" ? marks : answers;
  const share = (us: number): number => us / (elapsedMs * 1000);
  return {
    cpuUs: serverUs / units,
    unitsPerSecond: (units * 1000) / elapsedMs,
    serverShare: share(serverUs),
    serverWaitShare: share(after[0]!.waitedUs - before[0]!.waitedUs),
    generatorShare: share(generatorUs),
    upstreamShare: share(upstreamUs),
    elapsedMs,
    wrong,
    firstWrong,
  };
}
