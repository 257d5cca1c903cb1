import { UsageStep } from "../../gen/parley/console/v1/usage_pb.js";

export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

/** A time step of charts and tables. Days are those of the reader's time zone. */
export interface Step {
  readonly message: UsageStep;
  /** Length; a day in which clocks change has another. */
  readonly lengthMs: number;
  /** `per hour`. */
  readonly each: string;
  /** Name of the column of a table. */
  readonly column: string;
  /** Name of the column of a CSV file. */
  readonly csvColumn: string;
}

const STEPS = {
  minute: {
    message: UsageStep.MINUTE,
    lengthMs: MINUTE_MS,
    each: "per minute",
    column: "Minute",
    csvColumn: "time_utc",
  },
  fiveMinutes: {
    message: UsageStep.FIVE_MINUTES,
    lengthMs: 5 * MINUTE_MS,
    each: "per 5 minutes",
    column: "5 minutes from",
    csvColumn: "time_utc",
  },
  hour: { message: UsageStep.HOUR, lengthMs: HOUR_MS, each: "per hour", column: "Hour", csvColumn: "time_utc" },
  day: { message: UsageStep.DAY, lengthMs: DAY_MS, each: "per day", column: "Day", csvColumn: "day" },
} as const satisfies Record<string, Step>;

/** Longest periods that are shown by the minute, by five minutes and by the hour. */
const LONGEST = [
  [90 * MINUTE_MS, STEPS.minute],
  [8 * HOUR_MS, STEPS.fiveMinutes],
  [3 * DAY_MS, STEPS.hour],
] as const;

/** Returns the step for a period of this length: 15 to 100 of them, except for long periods. */
export function stepFor(lengthMs: number, { hasMinutes }: { readonly hasMinutes: boolean }): Step {
  const [, step] = LONGEST.find(([longestMs]) => lengthMs <= longestMs) ?? [];
  if (step === undefined) return STEPS.day;
  return hasMinutes ? step : STEPS.hour;
}

/** A period in Unix milliseconds, without its end. */
export interface Period {
  readonly sinceMs: number;
  readonly untilMs: number;
}

/** Returns the start times of all steps that overlap the period, in Unix milliseconds. */
export function stepsOf({ sinceMs, untilMs }: Period, { lengthMs }: Pick<Step, "lengthMs">): number[] {
  if (lengthMs === DAY_MS) return daysOf({ sinceMs, untilMs });
  const first = Math.floor(sinceMs / lengthMs) * lengthMs;
  return Array.from({ length: Math.ceil((untilMs - first) / lengthMs) }, (_, index) => first + index * lengthMs);
}

function daysOf({ sinceMs, untilMs }: Period): number[] {
  const first = new Date(sinceMs);
  const days: number[] = [];
  for (let day = first.getDate(); ; day += 1) {
    const atMs = new Date(first.getFullYear(), first.getMonth(), day).getTime();
    if (atMs >= untilMs) return days;
    days.push(atMs);
  }
}

/** Returns the end of a step. */
export function endOfStep(atMs: number, { lengthMs }: Pick<Step, "lengthMs">): number {
  if (lengthMs !== DAY_MS) return atMs + lengthMs;
  const time = new Date(atMs);
  return new Date(time.getFullYear(), time.getMonth(), time.getDate() + 1).getTime();
}
