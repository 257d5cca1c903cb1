import { DAY_MS, HOUR_MS, MINUTE_MS, type Period, stepFor } from "./steps.ts";

/** Selectable periods up to now, by name in the URL. */
export const RANGES = {
  "15m": { lengthMs: 15 * MINUTE_MS, text: "15 minutes" },
  "1h": { lengthMs: HOUR_MS, text: "hour" },
  "6h": { lengthMs: 6 * HOUR_MS, text: "6 hours" },
  "24h": { lengthMs: DAY_MS, text: "24 hours" },
  "7d": { lengthMs: 7 * DAY_MS, text: "7 days" },
  "30d": { lengthMs: 30 * DAY_MS, text: "30 days" },
  "90d": { lengthMs: 90 * DAY_MS, text: "90 days" },
  "1y": { lengthMs: 365 * DAY_MS, text: "365 days" },
} as const;

export type Range = keyof typeof RANGES;

/** Whether a range has this name. */
export function isRange(name: string): name is Range {
  return Object.hasOwn(RANGES, name);
}

/** Longest period of a usage query. */
export const MAX_PERIOD_MS = 366 * DAY_MS;

/** Reads a period; undefined if it is not a valid one. */
export function readPeriod(since: string, until: string): Period | undefined {
  const [sinceMs, untilMs] = [Date.parse(since), Date.parse(until)];
  const isValid = sinceMs >= 0 && sinceMs < untilMs && untilMs - sinceMs <= MAX_PERIOD_MS;
  return isValid ? { sinceMs, untilMs } : undefined;
}

/** Sums of minutes are kept for 48 hours; a minute less, because the server’s clock may be ahead. */
const MINUTES_KEPT_MS = 2 * DAY_MS - MINUTE_MS;

/**
 * Returns the period of a range. One of up to 24 hours ends with the current step. A longer one has whole days of the
 * reader's time zone, including today.
 */
export function periodOf(range: Range, nowMs: number): Period {
  const { lengthMs } = RANGES[range];
  const unitMs = stepFor(lengthMs, { hasMinutes: true }).lengthMs;
  if (unitMs < DAY_MS) {
    const untilMs = Math.floor(nowMs / unitMs + 1) * unitMs;
    return { sinceMs: untilMs - lengthMs, untilMs };
  }
  const today = new Date(nowMs);
  const first = new Date(today.getFullYear(), today.getMonth(), today.getDate() - (lengthMs / DAY_MS - 1));
  return { sinceMs: first.getTime(), untilMs: Math.floor(nowMs / HOUR_MS + 1) * HOUR_MS };
}

/**
 * Rounds a period to whole minutes, or to hours if the server no longer has sums of its minutes. `shiftMs` is the
 * distance to the period to compare with, by default the length of the period. `isComparable` is false if the server no
 * longer has the minutes of that period.
 */
export function inWholeUnits(
  { sinceMs, untilMs }: Period,
  { nowMs, shiftMs }: { readonly nowMs: number; readonly shiftMs: number | undefined },
) {
  const step = stepFor(untilMs - sinceMs, { hasMinutes: true });
  const areKept = (fromMs: number): boolean => fromMs >= nowMs - MINUTES_KEPT_MS;
  const hasMinutes = step.lengthMs < HOUR_MS && areKept(sinceMs);
  const unitMs = hasMinutes ? MINUTE_MS : HOUR_MS;
  // An hour that midnight divides belongs to the day before.
  const fromMs = (step.lengthMs === DAY_MS ? Math.ceil(sinceMs / unitMs) : Math.floor(sinceMs / unitMs)) * unitMs;
  const toMs = Math.max(Math.ceil(untilMs / unitMs) * unitMs, fromMs + unitMs);
  const byMs = shiftMs ?? toMs - fromMs;
  const isComparable = !hasMinutes || areKept(fromMs - byMs);
  return { sinceMs: fromMs, untilMs: toMs, hasMinutes, isComparable, shiftMs: byMs };
}

/**
 * Returns the period to compare with. Periods by the day go back by the calendar, so that each day has its counterpart
 * where clocks change in between.
 */
export function periodBefore({ sinceMs, untilMs }: Period, shiftMs: number): Period {
  const days = Math.round(shiftMs / DAY_MS);
  const isByDay = stepFor(untilMs - sinceMs, { hasMinutes: true }).lengthMs === DAY_MS;
  if (!isByDay || Math.abs(shiftMs - days * DAY_MS) > HOUR_MS)
    return { sinceMs: sinceMs - shiftMs, untilMs: untilMs - shiftMs };
  const back = (atMs: number): number => {
    const time = new Date(atMs);
    return time.setDate(time.getDate() - days);
  };
  return { sinceMs: back(sinceMs), untilMs: back(untilMs) };
}
