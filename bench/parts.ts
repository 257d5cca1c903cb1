import { formatAccounting, measureAccounting } from "./accounting/measure.ts";
import { compare, compareCheckouts, ratioOfCheckouts, watchLoops } from "./compare.ts";
import type { Setting } from "./contestants/server.ts";
import { compareFormats } from "./formats/measure.ts";
import { LONG_GROWTH, measureGrowth, USUAL_GROWTH } from "./growth/measure.ts";
import { measureLatency } from "./latency/measure.ts";
import { formatLatency } from "./latency/result.ts";
import { LATENCY_LOADS, type Load, planLoads, UNARY } from "./loads.ts";
import type { LoadResult } from "./measure/result.ts";
import type { RoundsOptions } from "./measure/rounds.ts";
import type { Measurements } from "./measurements.ts";
import { comparePeers, tabulatePeers } from "./peers/measure.ts";
import { type InstalledPeer, installPeers } from "./peers/peers.ts";
import { LONG_SIZE, measureMemory, USUAL_SIZE } from "./memory/measure.ts";
import { formatMemory } from "./memory/result.ts";
import type { Options } from "./options.ts";
import { profileLoad } from "./profile/run.ts";
import { formatLoad } from "./report.ts";
import { measureScenarios } from "./scenarios/measure.ts";
import { formatScenario } from "./scenarios/table.ts";
import { formatStartup, measureStartup } from "./startup/measure.ts";
import { compareTargets } from "./targets/measure.ts";
import { formatTranslation, measureTranslation } from "./translate/measure.ts";
import { compareWorkers } from "./workers/measure.ts";

/** Common settings of all servers, and the mock upstream's process ID. */
export interface Place extends Omit<Setting, "load"> {
  readonly upstream: number;
}

/** Measures the parts that run in this process. */
export async function measureInProcess({ parts, rounds }: Options, measured: Measurements): Promise<void> {
  if (parts.includes("translate")) {
    measured.translation = measureTranslation(rounds);
    print(formatTranslation(measured.translation));
  }
  if (parts.includes("accounting")) {
    measured.accounting = await measureAccounting(rounds);
    print(formatAccounting(measured.accounting));
  }
}

/** Measures the parts with servers. Prints each result as soon as it is available. */
export async function measureServers(place: Place, options: Options, measured: Measurements): Promise<void> {
  const { parts, long } = options;
  const rounds: RoundsOptions = { ...options, upstream: place.upstream };
  for (const load of planLoads(parts)) measured.loads.push(await compareLoad(load, place, rounds));
  if (parts.includes("formats")) {
    for await (const result of compareFormats(place, rounds)) {
      print(formatLoad(result));
      measured.formats.push(result);
    }
  }
  if (parts.includes("targets")) {
    const result = await compareTargets(place, rounds);
    print(formatLoad(result));
    measured.targets.push(result);
  }
  if (parts.includes("latency")) {
    for (const load of LATENCY_LOADS) {
      const latency = await measureLatency({ ...place, load }, rounds);
      print(formatLatency(latency));
      measured.latency.push(latency);
    }
  }
  for await (const table of measureScenarios(place, { ...rounds, parts, long })) {
    print(formatScenario(table));
    measured.scenarios.push(table);
  }
  let installing: Promise<readonly InstalledPeer[]> | undefined;
  const install = (): Promise<readonly InstalledPeer[]> => (installing ??= installPeers(place.folder, print));
  if (parts.includes("memory")) {
    // Peers are installed during the idle time of the memory measurement, where they disturb no other part.
    const whileResting = async (): Promise<void> => void (parts.includes("peers") && (await install()));
    measured.memory = await measureMemory(place, { ...rounds, whileResting }, long ? LONG_SIZE : USUAL_SIZE);
    print(formatMemory(measured.memory));
  }
  if (parts.includes("startup")) {
    measured.startup = await measureStartup({ ...place, load: UNARY });
    print(formatStartup(measured.startup));
  }
  if (parts.includes("growth")) {
    for await (const result of measureGrowth(place, rounds, long ? LONG_GROWTH : USUAL_GROWTH)) {
      print(formatLoad(result));
      measured.growth.push(result);
    }
  }
  if (parts.includes("workers")) {
    for await (const result of compareWorkers(place, rounds)) {
      print(formatLoad(result));
      measured.workers.push(result);
    }
  }
  if (parts.includes("peers")) {
    const peers = await install();
    for await (const result of comparePeers(place, rounds, peers)) {
      print(formatLoad(result));
      measured.peers.push(result);
    }
    for await (const result of tabulatePeers(place, { ...rounds, parts, long }, peers)) {
      print(formatScenario(result));
      measured.peerTables.push(result);
    }
  }
}

async function compareLoad(load: Load, place: Place, rounds: RoundsOptions): Promise<LoadResult> {
  const setting = { ...place, load };
  const compared = await compare(setting, rounds);
  const result = load.watchesLoop ? { ...compared, loopDelays: await watchLoops(setting, rounds) } : compared;
  print(formatLoad(result));
  return result;
}

/** This checkout beside another one, under each load of the parts. */
export async function measureCheckouts(place: Place, options: Options, against: string): Promise<LoadResult[]> {
  const results: LoadResult[] = [];
  for (const load of planLoads(options.parts)) {
    const result = await compareCheckouts({ ...place, load }, { ...options, upstream: place.upstream }, against);
    print(`${formatLoad(result)}\n  after / before: ${ratioOfCheckouts(result).toFixed(3)}`);
    results.push(result);
  }
  if (results.length === 0) throw new Error("These parts have no load; unary, stream, grpc and image do.");
  return results;
}

/** Profiles of Parley under each load of the parts. */
export async function profileServers(place: Place, options: Options, results: string): Promise<void> {
  const loads = planLoads(options.parts);
  if (loads.length === 0) throw new Error("These parts have no profile; unary, stream, grpc and image do.");
  for (const load of loads) print(await profileLoad({ ...place, load }, results));
}

function print(table: string): void {
  console.log(`${table}\n`);
}
