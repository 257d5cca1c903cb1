import { LATENCY_BOUNDS_MS } from "../../ledger/latency-histogram.ts";
import type { Latencies, StepLatencies } from "../../ledger/target-history.ts";
import { STEP_MS } from "../../ledger/usage-store.ts";
import type { TargetLatenciesRow } from "../schema.ts";

/** Length of the steps of `target_latencies`. */
export const HALF_HOUR_MS = STEP_MS.hour / 2;

const BUCKETS = [...LATENCY_BOUNDS_MS.map((boundMs) => `${boundMs}` as const), "more"] as const;
const FIRST_CONTENT = BUCKETS.map((bucket) => `first_content_${bucket}` as const);
const DURATION = BUCKETS.map((bucket) => `duration_${bucket}` as const);

/** Columns of the histograms of `target_latencies`. */
export const LATENCY_COLUMNS = [...FIRST_CONTENT, ...DURATION];

/** The columns of both histograms. */
export type LatencyCounts = Omit<TargetLatenciesRow, "target" | "start_ms">;

export function toLatenciesRow({ target, atMs, firstContent, duration }: StepLatencies): TargetLatenciesRow {
  const counts = [...firstContent, ...duration].map((count, index) => [LATENCY_COLUMNS[index]!, count] as const);
  return { target, start_ms: atMs, ...Object.fromEntries(counts) };
}

export function toLatencies(row: LatencyCounts): Latencies {
  return {
    firstContent: FIRST_CONTENT.map((column) => row[column]!),
    duration: DURATION.map((column) => row[column]!),
  };
}
