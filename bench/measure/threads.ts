import { type CpuTime, parseSchedstat } from "./cpu-time.ts";
import { listIfThere, readIfThere } from "./proc.ts";

/** Kinds of threads of a Node process. In another program all but the first are "other". */
export const THREAD_KINDS = ["main", "SQLite", "V8", "libuv", "other"] as const;

/** One kind. */
export type ThreadKind = (typeof THREAD_KINDS)[number];

/** The CPU time of each kind of thread. */
export type ThreadTimes = Readonly<Record<ThreadKind, CpuTime>>;

/** A value for each kind. */
export function byKind<T>(valueOf: (kind: ThreadKind) => T): Record<ThreadKind, T> {
  return Object.fromEntries(THREAD_KINDS.map((kind) => [kind, valueOf(kind)])) as Record<ThreadKind, T>;
}

/** Kind of a thread by its name in `/proc/PID/task/TID/comm`, which has at most 15 characters. */
export function kindOf(name: string, isFirst: boolean): ThreadKind {
  if (isFirst) return "main";
  if (name === "sqlite") return "SQLite";
  if (/V8Worker|^DelayedTask/.test(name)) return "V8";
  return name.includes("libuv") ? "libuv" : "other";
}

/** Sum over all threads of these processes, without threads that have ended; servers keep theirs. */
export function threadTimes(pids: readonly number[]): ThreadTimes {
  const times = byKind(() => ({ usedUs: 0, waitedUs: 0 }));
  for (const pid of pids) {
    for (const thread of listIfThere(`/proc/${pid}/task`)) {
      const folder = `/proc/${pid}/task/${thread}`;
      const schedstat = readIfThere(`${folder}/schedstat`);
      const name = readIfThere(`${folder}/comm`);
      if (schedstat === undefined || name === undefined) continue;
      const time = parseSchedstat(schedstat);
      const sum = times[kindOf(name.trim(), thread === String(pid))];
      sum.usedUs += time.usedUs;
      sum.waitedUs += time.waitedUs;
    }
  }
  return times;
}
