import { compare } from "../compare.ts";
import { startByteRelay } from "../contestants/floors.ts";
import type { Start } from "../contestants/line-up.ts";
import { startParley, startParleyInterval } from "../contestants/parley.ts";
import type { Setting } from "../contestants/server.ts";
import { FIFTY_MESSAGES, type Load, pacedStreams, UNARY } from "../loads.ts";
import type { LoadResult } from "../measure/result.ts";
import type { RoundsOptions } from "../measure/rounds.ts";
import { compareOpenLoops } from "../scenarios/loads.ts";
import { type ScenarioOptions, withContestants } from "../scenarios/measure.ts";
import type { ScenarioTable } from "../scenarios/table.ts";
import { measureFrontier } from "./frontier.ts";
import { DUTIES, type InstalledPeer } from "./peers.ts";

/** Few enough streams for Portkey to keep the pace. */
const STREAMS = { streams: 20, chunks: 100 };

const LOADS: readonly Load[] = [UNARY, FIFTY_MESSAGES, pacedStreams("peers", STREAMS)].map((load) => ({
  ...load,
  part: "peers",
  name: `${load.name}, beside other gateways`,
}));
/** Names of the short conversation and of the paced streams beside peers. */
export const [SHORT_BESIDE_PEERS, STREAMS_BESIDE_PEERS] = [LOADS[0]!.name, LOADS.at(-1)!.name];
/** Title of the latencies at fixed rates. */
export const OPEN_LOOPS_BESIDE_PEERS = "open loop beside other gateways";
/** Calls per second of the open loops. */
const RATES = [200, 500, 1_000] as const;

/** The cost of each load, beside the byte relay. */
export async function* comparePeers(
  place: Omit<Setting, "load">,
  options: RoundsOptions,
  peers: readonly InstalledPeer[],
): AsyncGenerator<LoadResult> {
  for (const load of LOADS) {
    const others = startsOf(load.streamed ? peers.filter(({ keepsPace }) => keepsPace) : peers);
    yield await compare({ ...place, load }, options, [startParleyInterval, ...others]);
  }
}

/** Latencies at fixed rates, the columns of the public comparison, and what each gateway does for a request. */
export async function* tabulatePeers(
  place: Omit<Setting, "load"> & { readonly upstream: number },
  options: ScenarioOptions,
  peers: readonly InstalledPeer[],
): AsyncGenerator<ScenarioTable> {
  const setting = { ...place, load: UNARY };
  const own: readonly Start[] = [startByteRelay, startParley, startParleyInterval];
  const openLoops = [...own, ...startsOf(peers.filter(({ keepsPace }) => keepsPace))];
  const measures = [compareOpenLoops(OPEN_LOOPS_BESIDE_PEERS, RATES)];
  yield* await withContestants(setting, openLoops, { options, measures });
  yield await measureFrontier(setting, [...own, ...startsOf(peers)], options);
  yield {
    title: "what each does for a request",
    head: ["", "keys", "limits", "record"],
    rows: DUTIES.map(({ name, keys, limits, record }) => [name, keys, limits, record]),
    problems: [],
  };
}

function startsOf(peers: readonly InstalledPeer[]): readonly Start[] {
  return peers.map(({ start }) => start);
}
