import { PEER_CORE, startOwn, stopChild } from "./children.ts";
import {
  BYTE_RELAY,
  GRPC_RELAY,
  nginxPath,
  startByteRelay,
  startGrpcEcho,
  startGrpcRelay,
  startNginx,
} from "./contestants/floors.ts";
import { startParley } from "./contestants/parley.ts";
import { probe } from "./contestants/probe.ts";
import type { RunningServer, Setting } from "./contestants/server.ts";
import type { Assignment } from "./load/caller.ts";
import type { Load } from "./loads.ts";
import { type Contestant, type RoundsOptions, runRounds } from "./measure/rounds.ts";
import { type LoadResult, summarise } from "./measure/result.ts";

/** Long enough for the compiler to have seen the hot path. */
const WARM_UP_SECONDS = 2.5;

const STARTS = {
  http: [...(nginxPath === undefined ? [] : [startNginx]), startByteRelay, startParley],
  grpc: [startGrpcEcho, startGrpcRelay, startParley],
} as const;

/** Runs all contestants under one load, each in a process of its own, and sums up. */
export async function compare(
  setting: Setting,
  options: Pick<RoundsOptions, "rounds" | "seconds" | "upstream">,
): Promise<LoadResult> {
  const { load } = setting;
  const servers: RunningServer[] = [];
  const contestants: Contestant[] = [];
  try {
    for (const start of STARTS[load.transport]) {
      const server = await start(setting);
      servers.push(server);
      await probe(server, load);
      contestants.push({
        name: server.name,
        server: server.process.pid!,
        generator: await startGenerator(load, server),
      });
    }
    const slices = await runRounds(load, contestants, { ...options, warmUpSeconds: WARM_UP_SECONDS });
    for (const server of servers) await probe(server, load);
    return summarise(load, slices, load.transport === "http" ? BYTE_RELAY : GRPC_RELAY);
  } finally {
    await Promise.all(contestants.map(({ generator }) => stopChild(generator)));
    await Promise.all(servers.map((server) => stopChild(server.process)));
  }
}

/** Starts a load generator that is ready to send this load to this server. */
export async function startGenerator(
  load: Load,
  { port, key, lastWords }: RunningServer,
): Promise<Contestant["generator"]> {
  const assignment: Assignment = { load, target: { port, key, lastWords } };
  const [generator] = await startOwn<object>(PEER_CORE, "load/generator.ts", [JSON.stringify(assignment)]);
  return generator;
}
