import type { LoggedRequest } from "../../gen/parley/console/v1/request_pb.js";
import { type Attempt, readAttempt } from "../format/attempt.ts";

/** An attempt on the time axis of its request. Positions are from 0 (request arrived) to 1 (request ended). */
export interface TimelineEntry {
  readonly attempt: Attempt;
  readonly from: number;
  readonly to: number;
  /** Wait between the end of the previous attempt and this one, mostly backoff. Undefined for the first attempt. */
  readonly wait: { readonly from: number; readonly ms: number } | undefined;
}

export interface Timeline {
  readonly entries: readonly TimelineEntry[];
  /** Position of the first token; undefined without one. */
  readonly firstToken: number | undefined;
}

/** Times are rounded to milliseconds, so a wait up to ROUNDING_MS may be a rounding error. */
const ROUNDING_MS = 2;

/** Places the attempts of a request on a common time axis. Skipped attempts take no time and start no wait. */
export function toTimeline({ durationMs, firstContentMs, ...request }: TimedRequest): Timeline {
  const attempts = request.attempts.map(readAttempt);
  const ends = attempts.map(({ startMs, durationMs: ms }) => startMs + ms);
  const totalMs = Math.max(durationMs, ...ends, 1);
  let endMs: number | undefined;
  const entries = attempts.map((attempt, index): TimelineEntry => {
    const { startMs, code } = attempt;
    const at = { attempt, from: startMs / totalMs, to: ends[index]! / totalMs };
    if (code === "skipped") return { ...at, wait: undefined };
    const waitMs = endMs === undefined ? 0 : startMs - endMs;
    const wait = waitMs > ROUNDING_MS ? { from: endMs! / totalMs, ms: waitMs } : undefined;
    endMs = ends[index]!;
    return { ...at, wait };
  });
  return { entries, firstToken: firstContentMs === undefined ? undefined : Math.min(firstContentMs / totalMs, 1) };
}

type TimedRequest = Pick<LoggedRequest, "attempts" | "durationMs"> & { readonly firstContentMs?: number | undefined };
