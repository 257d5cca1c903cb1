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
import { startParley } from "./contestants/parley.ts";
import type { Setting } from "./contestants/server.ts";
import { INSTRUMENTED } from "./inside/instrumented.ts";
import type { LoopDelay, Question } from "./inside/instruments.ts";
import { type LoadResult, type NamedLoopDelay, summarise } from "./measure/result.ts";
import { type RoundsOptions, runRounds, runSlice } from "./measure/rounds.ts";

const STARTS: Readonly<Record<"http" | "grpc" | "peers", readonly Start[]>> = {
  http: [...(nginxPath === undefined ? [] : [startNginx]), startByteRelay, startParley],
  // What is more than moving the bytes is what gateways are compared by.
  peers: [startByteRelay, startParley],
  grpc: [startGrpcEcho, startGrpcRelay, startParley],
};

/** Long enough for a thousandth of the loop's turns to be some. */
const WATCHED_SECONDS = 4;

/** Runs the floors, Parley and these others under one load, each in a process of its own, and sums up. */
export async function compare(
  setting: Setting,
  options: RoundsOptions,
  others: readonly Start[] = [],
): Promise<LoadResult> {
  const { load } = setting;
  const floors = STARTS[load.part === "peers" ? "peers" : load.transport];
  const starts = [...floors, ...(load.part === "unary" ? [startJsonRelay] : []), ...others];
  return withLineUp(setting, starts, async (contestants) => {
    const floor = load.transport === "http" ? BYTE_RELAY : GRPC_RELAY;
    return summarise(load, await runRounds(load, contestants, options), floor);
  });
}

/** How late the event loops of the byte relay and of Parley are under a load, warmed up. */
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
