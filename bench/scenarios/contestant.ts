import type { ChildProcess } from "node:child_process";
import { setTimeout as delay } from "node:timers/promises";
import { askChild, stopChild } from "../children.ts";
import { type LinedUp, startCaller } from "../contestants/line-up.ts";
import type { Target } from "../load/caller.ts";
import type { ScenarioReply, ScenarioRequest } from "../load/scenario.ts";
import { UNARY } from "../loads.ts";
import { cpuTime, processTree } from "../measure/cpu-time.ts";
import { median, percentile } from "../measure/statistics.ts";

/** Pause after a run, so that a server's later work is charged to it. */
const SETTLE_MS = 100;

/** One run of one contestant. */
export interface Run extends Omit<ScenarioReply, "latenciesMs"> {
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** CPU time of the server's processes, in microseconds. */
  readonly usedUs: number;
}

/** A server with the generator of its scenarios, and its wrong answers. */
export class ScenarioContestant {
  readonly name: string;
  readonly problems: string[] = [];
  readonly #server: number;
  readonly #caller: ChildProcess;

  private constructor({ name, server }: Pick<LinedUp, "name" | "server">, caller: ChildProcess) {
    this.name = name;
    this.#server = server;
    this.#caller = caller;
  }

  /** Starts its generator. */
  static async start({
    name,
    server,
    running,
  }: Pick<LinedUp, "name" | "server"> & { readonly running: Target }): Promise<ScenarioContestant> {
    return new ScenarioContestant(
      { name, server },
      await startCaller("load/scenario.ts", { load: UNARY, target: running }),
    );
  }

  async run(request: ScenarioRequest): Promise<Run> {
    const servers = processTree(this.#server);
    const before = cpuTime(servers).usedUs;
    const { latenciesMs, ...reply } = await askChild<ScenarioReply>(this.#caller, request);
    await delay(SETTLE_MS);
    const usedUs = cpuTime(servers).usedUs - before;
    const broken = reply.wrong - reply.refused;
    if (broken > 0) this.problems.push(`${this.name}: ${broken} wrong answers, first: ${reply.firstWrong}`);
    return { ...reply, usedUs, p50Ms: percentile(latenciesMs, 50), p99Ms: percentile(latenciesMs, 99) };
  }

  stop(): Promise<void> {
    return stopChild(this.#caller);
  }
}

/** CPU time per answer, refusals not counted as answers. */
export function cpuUsOf({ usedUs, answers }: Run): number {
  return usedUs / answers;
}

/** Right answers per second. */
export function rateOf({ answers, elapsedMs }: Run): number {
  return (answers * 1000) / elapsedMs;
}

/** The median of a figure over runs. */
export function medianOf(runs: readonly Run[], figure: (run: Run) => number): number {
  return median(runs.map(figure));
}
