import { readFileSync } from "node:fs";

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
