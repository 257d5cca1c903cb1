import type { ChildProcess } from "node:child_process";
import { PEER_CORE, startOwn, stopChild } from "../children.ts";
import type { Assignment, Target } from "../load/caller.ts";
import type { Load } from "../loads.ts";
import type { Contestant } from "../measure/rounds.ts";
import { probe } from "./probe.ts";
import type { RunningServer, Setting } from "./server.ts";

/** Starts one contestant; undefined when it is omitted (the reason is printed). */
export type Start = (setting: Setting) => Promise<RunningServer | undefined>;

/** A server with a load generator that is ready. */
export interface LinedUp extends Contestant {
  readonly running: RunningServer;
}

/**
 * Starts these contestants one after another, runs the measurement, and always ends them. A stock client checks one
 * whole answer of each before and after: throws when one is wrong.
 */
export async function withLineUp<T>(
  setting: Setting,
  starts: readonly Start[],
  measure: (contestants: readonly LinedUp[]) => Promise<T>,
): Promise<T> {
  const { load } = setting;
  const servers: RunningServer[] = [];
  const contestants: LinedUp[] = [];
  try {
    for (const start of starts) {
      const running = await start(setting);
      if (running === undefined) continue;
      servers.push(running);
      await probe(running, load);
      const connections = running.connections ?? load.connections;
      const generator = await startGenerator({ ...load, connections }, running, setting.generatorCore);
      const { name, process, warmUpSeconds } = running;
      const contestant = { name, server: process.pid!, generator, running };
      contestants.push(warmUpSeconds === undefined ? contestant : { ...contestant, warmUpSeconds });
    }
    const measured = await measure(contestants);
    for (const server of servers) await probe(server, load);
    return measured;
  } finally {
    await Promise.all(contestants.map(({ generator }) => stopChild(generator)));
    await Promise.all(servers.map((server) => stopChild(server.process)));
  }
}

/** Starts a load generator that is ready to send this load to this server. */
export function startGenerator(load: Load, target: Target, core = PEER_CORE): Promise<ChildProcess> {
  return startCaller("load/generator.ts", { load, target }, core);
}

/** Starts one of the programs that send calls. */
export async function startCaller(
  file: string,
  { load, target }: Assignment,
  core: number = PEER_CORE,
): Promise<ChildProcess> {
  const { port, key, keys, headers, format, grpcRequest, lastWords } = target;
  const assignment = { load, target: { port, key, keys, headers, format, grpcRequest, lastWords } };
  const [caller] = await startOwn<object>({ core, file, args: [JSON.stringify(assignment)] });
  return caller;
}
