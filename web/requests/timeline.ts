import type { LoggedRequest } from "../../gen/parley/console/v1/request_pb.js";
import type { Attempt } from "../../gen/parley/v1/report_pb.js";

/** An attempt in the time of its request; positions are from 0, when the request arrived, to 1, when it ended. */
export interface TimelineEntry {
  readonly attempt: Attempt;
  readonly from: number;
  readonly to: number;
  /** The wait before it, after the end of the attempt before: backoff for the most part. Undefined before the first one. */
  readonly wait: { readonly from: number; readonly ms: number } | undefined;
}

export interface Timeline {
  readonly entries: readonly TimelineEntry[];
  /** Where the first token was sent; undefined without one. */
  readonly firstToken: number | undefined;
}

/** Times are whole milliseconds: up to this, a wait may be nothing but rounding. */
const ROUNDING_MS = 2;

/** Puts the attempts of a request on a common time axis. Skipped attempts take no time, and begin no wait. */
export function toTimeline({ attempts, durationMs, firstContentMs }: TimedRequest): Timeline {
  const ends = attempts.map(({ startMs, durationMs: ms }) => startMs + ms);
  const totalMs = Math.max(durationMs, ...ends, 1);
  let endMs: number | undefined;
  const entries = attempts.map((attempt, index): TimelineEntry => {
    const { startMs, outcome } = attempt;
    const at = { attempt, from: startMs / totalMs, to: ends[index]! / totalMs };
    if (outcome === "skipped") return { ...at, wait: undefined };
    const waitMs = endMs === undefined ? 0 : startMs - endMs;
    const wait = waitMs > ROUNDING_MS ? { from: endMs! / totalMs, ms: waitMs } : undefined;
    endMs = ends[index]!;
    return { ...at, wait };
  });
  return { entries, firstToken: firstContentMs === undefined ? undefined : Math.min(firstContentMs / totalMs, 1) };
}

type TimedRequest = Pick<LoggedRequest, "attempts" | "durationMs"> & { readonly firstContentMs?: number | undefined };
