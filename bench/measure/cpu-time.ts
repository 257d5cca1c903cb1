import { readdirSync, readFileSync } from "node:fs";

/** Whether this system keeps the clocks that are read here. */
export const canReadCpuTime = process.platform === "linux";

/** Nanoseconds on CPU: the first field of a thread's `schedstat`. Throws when it is not one. */
export function parseSchedstat(text: string): number {
  const match = /^(\d+) \d+ \d+\s*$/.exec(text);
  if (match === null) throw new Error(`not a schedstat: ${JSON.stringify(text)}`);
  return Number(match[1]);
}

/** The parent's id in `/proc/PID/stat`, whose second field is a name that may hold spaces and parentheses. */
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

/**
 * Microseconds that all threads of these processes have spent on a CPU so far, to the nanosecond of the scheduler's own
 * account. Threads that have ended are not in it: servers keep theirs.
 */
export function cpuTimeUs(pids: readonly number[]): number {
  let ns = 0;
  for (const pid of pids) {
    for (const thread of listIfThere(`/proc/${pid}/task`)) {
      const schedstat = readIfThere(`/proc/${pid}/task/${thread}/schedstat`);
      if (schedstat !== undefined) ns += parseSchedstat(schedstat);
    }
  }
  return ns / 1000;
}

/** A process may end between two looks at it. */
function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return undefined;
  }
}

function listIfThere(path: string): readonly string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}
