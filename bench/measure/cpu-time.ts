import { readdirSync } from "node:fs";
import { listIfThere, readIfThere } from "./proc.ts";

/** Whether this system has the clocks that are read here. */
export const canReadCpuTime = process.platform === "linux";

/** Scheduler times so far, in microseconds. */
export interface CpuTime {
  /** Time on a CPU. */
  readonly usedUs: number;
  /** Time runnable, while another thread had the CPU. */
  readonly waitedUs: number;
}

/** Reads a thread's `schedstat`: nanoseconds on CPU and waiting for it. Throws when it is not one. */
export function parseSchedstat(text: string): CpuTime {
  const match = /^(\d+) (\d+) \d+\s*$/.exec(text);
  if (match === null) throw new Error(`not a schedstat: ${JSON.stringify(text)}`);
  return { usedUs: Number(match[1]) / 1000, waitedUs: Number(match[2]) / 1000 };
}

/** The parent's id in `/proc/PID/stat`, whose second field is a name that may contain spaces and parentheses. */
export function parseParent(stat: string): number {
  const [, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return Number(parent);
}

/** A process and all its descendants, now. */
export function processTree(root: number): readonly number[] {
  const children = new Map<number, number[]>();
  for (const name of readdirSync("/proc").filter((entry) => /^\d+$/.test(entry))) {
    const stat = readIfThere(`/proc/${name}/stat`);
    if (stat === undefined) continue;
    const parent = parseParent(stat);
    children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
  }
  const tree = [root];
  for (const pid of tree) tree.push(...(children.get(pid) ?? []));
  return tree;
}

/** Sum over all threads of these processes, without threads that have ended; servers keep theirs. */
export function cpuTime(pids: readonly number[]): CpuTime {
  let usedUs = 0;
  let waitedUs = 0;
  for (const pid of pids) {
    for (const thread of listIfThere(`/proc/${pid}/task`)) {
      const schedstat = readIfThere(`/proc/${pid}/task/${thread}/schedstat`);
      if (schedstat === undefined) continue;
      const time = parseSchedstat(schedstat);
      usedUs += time.usedUs;
      waitedUs += time.waitedUs;
    }
  }
  return { usedUs, waitedUs };
}
