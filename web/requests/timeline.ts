import type { AttemptDetails, LoggedRequest } from "../../gen/parley/console/v1/request_pb.js";
import { type Attempt, readAttempt } from "../format/attempt.ts";

/** Parts of an attempt, and of the time between attempts. */
export type Phase = "backoff" | "connect" | "wait" | "think" | "receive" | "whole";

/** A part of the time axis. */
export interface Span {
  readonly phase: Phase;
  /** In milliseconds since the request arrived. */
  readonly fromMs: number;
  readonly toMs: number;
}

/** An attempt on the time axis of its request. */
export interface TimelineEntry {
  readonly attempt: Attempt;
  /** The provider's error text; empty unless the reader is an administrator. */
  readonly providerError: string;
  /** In order, without gaps from the attempt's begin to its end. Before it may be a wait. Empty for a skipped attempt. */
  readonly spans: readonly Span[];
}

export interface Timeline {
  readonly entries: readonly TimelineEntry[];
  /** End of the axis. */
  readonly totalMs: number;
}

/** Times are rounded to milliseconds, so a wait up to ROUNDING_MS may be a rounding error. */
const ROUNDING_MS = 2;

/** Places the attempts of a request on a common time axis. Skipped attempts take no time and start no wait. */
export function toTimeline({ durationMs, attempts, attemptDetails }: TimedRequest): Timeline {
  let endMs: number | undefined;
  let totalMs = Math.max(durationMs, 1);
  const entries = attempts.map((message, index): TimelineEntry => {
    const attempt = readAttempt(message);
    const details = attemptDetails[index];
    const providerError = details?.providerError ?? "";
    if (attempt.code === "skipped") return { attempt, providerError, spans: [] };
    const { startMs } = attempt;
    const waits = endMs !== undefined && startMs - endMs > ROUNDING_MS;
    const backoff: Span[] = waits ? [{ phase: "backoff", fromMs: endMs!, toMs: startMs }] : [];
    endMs = startMs + attempt.durationMs;
    totalMs = Math.max(totalMs, endMs);
    return { attempt, providerError, spans: [...backoff, ...phasesOf(attempt, details)] };
  });
  return { entries, totalMs };
}

/** The phases of an attempt, as far as its times are known. */
function phasesOf({ startMs, durationMs }: Attempt, details: Partial<AttemptDetails> | undefined): Span[] {
  const endMs = startMs + durationMs;
  const { sentMs, headMs, firstContentMs } = details ?? {};
  if (sentMs === undefined) return [{ phase: "whole", fromMs: startMs, toMs: endMs }];
  const marks: readonly (readonly [phase: Phase, toMs: number | undefined])[] = [
    ["connect", sentMs],
    ["wait", headMs],
    ["think", headMs === undefined ? undefined : firstContentMs],
  ];
  const spans: Span[] = [];
  let fromMs = startMs;
  let last: Phase = "wait";
  for (const [phase, markMs] of marks) {
    if (markMs === undefined) break;
    const toMs = Math.min(Math.max(markMs, fromMs), endMs);
    spans.push({ phase, fromMs, toMs });
    fromMs = toMs;
    last = phase === "connect" ? "wait" : "receive";
  }
  spans.push({ phase: last, fromMs, toMs: endMs });
  return spans;
}

type TimedRequest = Pick<LoggedRequest, "attempts" | "durationMs"> & {
  readonly attemptDetails: readonly Partial<AttemptDetails>[];
};
