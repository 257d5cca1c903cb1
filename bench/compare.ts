import { askChild } from "./children.ts";
import {
  BYTE_RELAY,
  GRPC_RELAY,
  nginxPath,
  startByteRelay,
  startGrpcEcho,
  startGrpcRelay,
  startJsonRelay,
  startNginx,
} from "./contestants/floors.ts";
import { type LinedUp, type Start, withLineUp } from "./contestants/line-up.ts";
import { startParley, startParleyInterval } from "./contestants/parley.ts";
import type { Setting } from "./contestants/server.ts";
import { INSTRUMENTED } from "./inside/instrumented.ts";
import { UNARY } from "./loads.ts";
import type { LoopDelay, Question } from "./inside/instruments.ts";
import { type LoadResult, type NamedLoopDelay, type Result, summarise } from "./measure/result.ts";
import { type RoundsOptions, runRounds, runSlice } from "./measure/rounds.ts";

const STARTS: Readonly<Record<"http" | "grpc" | "peers", readonly Start[]>> = {
  http: [...(nginxPath === undefined ? [] : [startNginx]), startByteRelay, startParley],
  // Gateways are compared by their cost beyond moving the bytes, so nginx is omitted.
  peers: [startByteRelay, startParley],
  grpc: [startGrpcEcho, startGrpcRelay, startParley],
};

/** Long enough to compute a 99.9th percentile of event loop turns. */
const WATCHED_SECONDS = 4;

/** Runs the floors, Parley and these others under one load, each in its own process, and summarises. */
export async function compare(
  setting: Setting,
  options: RoundsOptions,
  others: readonly Start[] = [],
): Promise<LoadResult> {
  const { load } = setting;
  const floors = STARTS[load.part === "peers" ? "peers" : load.transport];
  const jsonRelay = load.part === "unary" ? [startJsonRelay] : [];
  // The only load with a limit for it.
  const interval = load === UNARY ? [startParleyInterval] : [];
  const starts = [...floors, ...jsonRelay, ...interval, ...others];
  return withLineUp(setting, starts, async (contestants) => {
    const floor = load.transport === "http" ? BYTE_RELAY : GRPC_RELAY;
    return summarise(load, await runRounds(load, contestants, options), floor);
  });
}

/** Name of the other checkout in tables. */
const BEFORE = "before";

const BEFORE_AGAIN = "before (2)";

/**
 * Compares this checkout with another one, with two processes of each in turns, because processes of the same program
 * differ by some percent. The ratios of the table are to the other checkout's first process.
 */
export async function compareCheckouts(
  setting: Setting,
  options: RoundsOptions,
  checkout: string,
): Promise<LoadResult> {
  const startBefore =
    (name: string): Start =>
    async (given) => ({ ...(await startParley({ ...given, checkout })), name });
  const startAfter =
    (name: string): Start =>
    async (given) => ({ ...(await startParley(given)), name });
  const starts = [startBefore(BEFORE), startAfter("after"), startBefore(BEFORE_AGAIN), startAfter("after (2)")];
  return withLineUp(setting, starts, async (contestants) =>
    summarise(setting.load, await runRounds(setting.load, contestants, options), BEFORE),
  );
}

/**
 * Ratio of this checkout's cost to the other one's, each by its cheaper process: often one of two processes of the same
 * program has garbage collections for longer than its warm-up.
 */
export function ratioOfCheckouts({ results }: LoadResult): number {
  const isBefore = ({ contestant }: Result): boolean => contestant === BEFORE || contestant === BEFORE_AGAIN;
  const cheapest = (some: readonly Result[]): number => Math.min(...some.map(({ cpuUs }) => cpuUs.median));
  return cheapest(results.filter((result) => !isBefore(result))) / cheapest(results.filter(isBefore));
}

/** Event loop delays of the byte relay and of Parley under a load, after a warm-up. */
export async function watchLoops(setting: Setting, options: RoundsOptions): Promise<readonly NamedLoopDelay[]> {
  const instrumented = { ...setting, nodeOptions: INSTRUMENTED };
  return withLineUp(instrumented, [startByteRelay, startParley], async (contestants) => {
    const delays: NamedLoopDelay[] = [];
    for (const contestant of contestants) delays.push(await watchLoop(contestant, options));
    return delays;
  });
}

async function watchLoop({ name, generator, running }: LinedUp, options: RoundsOptions): Promise<NamedLoopDelay> {
  await runSlice(generator, Math.min(options.warmUpSeconds, WATCHED_SECONDS));
  await askChild<object>(running.process, { ask: "watch the loop" } satisfies Question);
  await runSlice(generator, Math.max(options.seconds, WATCHED_SECONDS));
  const delay = await askChild<LoopDelay>(running.process, { ask: "read the loop" } satisfies Question);
  return { contestant: name, ...delay };
}
