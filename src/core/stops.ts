import type { Attribution } from "./attribution.ts";
import { Failure } from "./failure.ts";

/** Kind of subject that a stop refuses. */
export type StopKind = "session" | "end_user";

/** A session or end user of an account whose calls are refused. */
export interface Stop {
  readonly kind: StopKind;
  readonly value: string;
  /** In Unix milliseconds. */
  readonly untilMs: number;
}

/** The failure of a call that is stopped at this Unix time; undefined for one that is not. */
export function stoppedBy(
  stops: readonly Stop[],
  { session, endUser }: Attribution,
  nowMs: number,
): Failure | undefined {
  const stop = stops.find(
    ({ kind, value, untilMs }) => value === (kind === "session" ? session : endUser) && nowMs < untilMs,
  );
  if (stop === undefined) return undefined;
  const what = stop.kind === "session" ? "This session" : "This end user";
  const other = stop.kind === "session" ? "; a new session is not concerned" : "";
  return new Failure(
    "stopped",
    `${what} is stopped until ${new Date(stop.untilMs).toISOString()}${other}. Members who manage the keys of this account can end the stop in the dashboard.`,
  );
}
