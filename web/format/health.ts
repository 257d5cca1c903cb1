import { type Breaker, BreakerState, type Latency } from "../../gen/parley/console/v1/model_pb.js";
import { formatDuration } from "./duration.ts";
import { formatCount, formatPercent } from "./number.ts";

/** The health fields of a model or an upstream model. */
export interface Observed {
  readonly breaker?: Breaker | undefined;
  /** Number of recent calls, including failed ones. */
  readonly attempts: bigint;
  readonly failures: bigint;
}

export type Health = "healthy" | "degraded" | "failing" | "circuit open" | "ready to retry" | "recovering" | "unknown";

/** Error rate from which a model with a closed circuit is degraded. */
const DEGRADED_SHARE = 0.1;

/** Returns the health of a model: by its circuit breaker, and by its error rate while the circuit is closed. */
export function healthOf({ breaker, attempts, failures }: Observed): Health {
  switch (breaker?.state) {
    case BreakerState.OPEN:
      return "circuit open";
    case BreakerState.HALF_OPEN:
      return breaker.probeInFlight ? "recovering" : "ready to retry";
    case BreakerState.CLOSED:
      if (failures > 0n && failures === attempts) return "failing";
      return Number(failures) / Math.max(Number(attempts), 1) >= DEGRADED_SHARE ? "degraded" : "healthy";
    default:
      return "unknown";
  }
}

/** Formats a latency: `p50 310 ms · p95 1.2 s (24 requests)`. `attempts` includes failed ones. */
export function formatLatency(latency: Latency | undefined, attempts: bigint): string {
  if (latency === undefined || latency.count === 0n) return attempts === 0n ? "No recent traffic" : "No recent data";
  const { count, p50Ms, p95Ms } = latency;
  if (count === 1n) return `${formatDuration(p50Ms)} (1 request)`;
  return `p50 ${formatDuration(p50Ms)} · p95 ${formatDuration(p95Ms)} (${formatCount(count)} requests)`;
}

/** Formats an error rate: `12.5% (3 of 24)`. */
export function formatShare(part: bigint, whole: bigint): string {
  if (whole === 0n) return "No recent traffic";
  if (part === 0n) return `0% (0 of ${formatCount(whole)})`;
  return `${formatPercent(Number(part) / Number(whole))} (${formatCount(part)} of ${formatCount(whole)})`;
}
