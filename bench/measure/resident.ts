import { processTree } from "./cpu-time.ts";
import { readIfThere } from "./proc.ts";

/** The memory that a process has in RAM, in KiB, by its `/proc/PID/status`; 0 without a value. */
export function parseResident(status: string): number {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0);
}

/** The memory that a process and its descendants have in RAM, in KiB. */
export function residentKiB(root: number): number {
  return processTree(root).reduce((sum, pid) => sum + parseResident(readIfThere(`/proc/${pid}/status`) ?? ""), 0);
}
