import { timestampMs } from "@bufbuild/protobuf/wkt";
import {
  BreakerState,
  type Latency,
  type ListTargetHistoryResponse,
  type TargetPeriod,
} from "../../gen/parley/console/v1/model_pb.js";
import type { TargetNames } from "../api/models.ts";
import { formatDuration } from "../format/duration.ts";
import { type Health, healthOf } from "../format/health.ts";
import { formatCount, formatPercent } from "../format/number.ts";
import { outcomeOf } from "../format/outcomes.ts";
import { DAY_MS, HOUR_MS, stepsOf } from "../usage/steps.ts";
import { fullStep } from "../usage/times.ts";

/** One cell of a strip. */
export interface Cell {
  readonly startMs: number;
  /** Undefined without attempts. */
  readonly health: Health | undefined;
  /** What happened, in words: `Nov 29, 10:30: 25 attempts, 3 failed (12%)`. */
  readonly text: string;
  /** Undefined without measured attempts. */
  readonly firstContent: Latency | undefined;
  readonly duration: Latency | undefined;
}

/** The cells of a strip, of which the first and the last step are given. */
export interface Strip {
  readonly cells: readonly Cell[];
  /** Text alternative. */
  readonly summary: string;
}

/** The history of a target by the half hour or by the day; undefined for an unknown target. */
export function stripOf(
  { targets, since, until }: ListTargetHistoryResponse,
  { provider, name }: TargetNames,
  unit: "half hour" | "day",
): Strip | undefined {
  const found = targets.find(({ target }) => target?.provider === provider && target.name === name);
  if (found === undefined || since === undefined || until === undefined) return undefined;
  const lengthMs = unit === "day" ? DAY_MS : HOUR_MS / 2;
  const byStart = new Map(found.periods.map((period) => [period.startTime && timestampMs(period.startTime), period]));
  const steps = stepsOf({ sinceMs: timestampMs(since), untilMs: timestampMs(until) }, { lengthMs });
  const cells = steps.map((startMs): Cell => toCell(startMs, byStart.get(startMs), lengthMs));
  return { cells, summary: summarize(cells, found.periods, unit) };
}

function toCell(startMs: number, period: TargetPeriod | undefined, lengthMs: number): Cell {
  const start = fullStep(startMs, { lengthMs });
  if (period === undefined || period.attempts === 0n)
    return {
      startMs,
      health: undefined,
      text: `${start}: no attempts`,
      firstContent: undefined,
      duration: undefined,
    };
  const { attempts, failures, outcomes, firstContent, duration } = period;
  const codes = outcomes
    .filter(({ outcome }) => outcome !== "served")
    .map(({ outcome, count }) => `${outcomeOf(outcome).label} (${formatCount(count)})`);
  const failed = failures === 0n ? "none failed" : `${formatCount(failures)} failed (${share(period)})`;
  const text = `${start}: ${countOf(attempts)}, ${failed}${codes.length === 0 ? "" : `: ${codes.join(", ")}`}`;
  const health = healthOf({ attempts, failures, breaker: CLOSED });
  const times = LATENCIES.flatMap(([of, name]) =>
    period[of] === undefined ? [] : `${name.toLowerCase()} ${describeLatency(period[of])}`,
  );
  return { startMs, health, text: [text, ...times].join("; "), firstContent, duration };
}

/** Measured latencies, with their names. */
export const LATENCIES = [
  ["firstContent", "Time to first token"],
  ["duration", "Total"],
] as const;

function describeLatency({ p50Ms, p95Ms }: Latency): string {
  return `p50 ${formatDuration(p50Ms)}, p95 ${formatDuration(p95Ms)}`;
}

/** A past has no circuit, so its health is that of its error rate. */
const CLOSED = { state: BreakerState.CLOSED } as NonNullable<Parameters<typeof healthOf>[0]["breaker"]>;

function summarize(cells: readonly Cell[], periods: readonly TargetPeriod[], unit: string): string {
  const sum = (of: (period: TargetPeriod) => bigint): bigint => periods.reduce((total, each) => total + of(each), 0n);
  const attempts = sum((period) => period.attempts);
  if (attempts === 0n) return "No attempts";
  const failures = sum((period) => period.failures);
  const bad = cells.filter(({ health }) => health === "degraded" || health === "failing");
  const worst = failures === 0n ? "none failed" : `${formatCount(failures)} failed`;
  const units = bad.length === 1 ? unit : `${unit}s`;
  return `${countOf(attempts)}, ${worst}, ${bad.length} ${units} degraded or failing`;
}

function countOf(attempts: bigint): string {
  return attempts === 1n ? "1 attempt" : `${formatCount(attempts)} attempts`;
}

function share({ attempts, failures }: TargetPeriod): string {
  return formatPercent(Number(failures) / Number(attempts));
}
