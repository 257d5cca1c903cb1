import { readFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";

/** How long a process's first thread has run, and has waited for a processor that others had, in seconds. */
export interface CoreTime {
  readonly run: number;
  readonly waited: number;
}

/** By the kernel's own account. */
export function coreTimeOf(pid: number): CoreTime {
  const [run = 0, waited = 0] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8").split(" ").map(Number);
  return { run: run / 1e9, waited: waited / 1e9 };
}

/**
 * How much longer everything took because others had the processor: 1 on a core of its own. Rates are multiplied by it and
 * times divided, so that a figure says something of the product and not of its machine's neighbours.
 */
export function slowdown(before: CoreTime, after: CoreTime): number {
  const run = after.run - before.run;
  return (run + after.waited - before.waited) / run;
}

/** With less than this share of all processors taken by others a machine is quiet. */
const QUIET_SHARE = 0.15;
const LOOK_MS = 2_000;

/**
 * Waits until the machine has little else to do, but not for ever; the caller has nothing under way meanwhile. Answers with
 * the share of its processors that others had at last.
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

/** Of all processors since the machine's start, in units of the kernel's own. */
function machineTime(): { readonly busy: number; readonly all: number } {
  const [total = ""] = readFileSync("/proc/stat", "utf8").split("\n");
  // User, nice, system, idle, waiting for disks, interrupts of both kinds, stolen by other machines. Guests are in user.
  const times = total.trim().split(/\s+/).slice(1, 9).map(Number);
  const all = times.reduce((sum, time) => sum + time, 0);
  return { busy: all - times[3]! - times[4]!, all };
}
