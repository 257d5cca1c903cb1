import { readFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";

/** Time that a process's main thread has run and has waited for a processor, in seconds. */
export interface CoreTime {
  readonly run: number;
  readonly waited: number;
}

/** From the kernel's scheduler statistics. */
export function coreTimeOf(pid: number): CoreTime {
  const [run = 0, waited = 0] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8").split(" ").map(Number);
  return { run: run / 1e9, waited: waited / 1e9 };
}

/**
 * Slowdown by other programs on the processor: 1 on a core of its own. Multiply rates and divide durations by it to
 * make figures comparable between machines.
 */
export function slowdown(before: CoreTime, after: CoreTime): number {
  const run = after.run - before.run;
  return (run + after.waited - before.waited) / run;
}

/** The machine counts as idle below this share of processor time used by others. */
const QUIET_SHARE = 0.15;
const LOOK_MS = 2_000;

/**
 * Waits until the machine is idle, with a timeout; the caller must be idle meanwhile. Returns the last share of
 * processor time used by others.
 */
export async function quietMachine(patienceMs: number): Promise<number> {
  const untilMs = performance.now() + patienceMs;
  for (;;) {
    const before = machineTime();
    await setTimeout(LOOK_MS);
    const after = machineTime();
    const share = (after.busy - before.busy) / (after.all - before.all);
    if (share < QUIET_SHARE || performance.now() > untilMs) return share;
  }
}

/** Processor time of the machine since its start, in kernel ticks. */
function machineTime(): { readonly busy: number; readonly all: number } {
  const [total = ""] = readFileSync("/proc/stat", "utf8").split("\n");
  // user, nice, system, idle, iowait, irq, softirq, steal. Guest time is part of user.
  const times = total.trim().split(/\s+/).slice(1, 9).map(Number);
  const all = times.reduce((sum, time) => sum + time, 0);
  return { busy: all - times[3]! - times[4]!, all };
}
