import type { Latency } from "../../gen/parley/console/v1/model_pb.js";
import { formatDuration } from "./duration.ts";
import { formatCount } from "./number.ts";

const PERCENT = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 1 });

/** How long something takes: `Half in 310 ms, 95% in 1.2 s (of 24)`. `attempts` is how many there were, also failed ones. */
export function formatLatency(latency: Latency | undefined, attempts: bigint): string {
  if (latency === undefined || latency.count === 0n) return attempts === 0n ? "Not asked lately" : "None lately";
  const { count, p50Ms, p95Ms } = latency;
  if (count === 1n) return `${formatDuration(p50Ms)} (of 1)`;
  return `Half in ${formatDuration(p50Ms)}, 95% in ${formatDuration(p95Ms)} (of ${formatCount(count)})`;
}

/** How many of some: `3 of 24 (12.5%)`. */
export function formatShare(part: bigint, whole: bigint): string {
  if (whole === 0n) return "Not asked lately";
  if (part === 0n) return `None of ${formatCount(whole)}`;
  return `${formatCount(part)} of ${formatCount(whole)} (${PERCENT.format(Number(part) / Number(whole))})`;
}
