import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";

const RELATIVE = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const EXACT = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "short" });

const CLOCK = new Intl.DateTimeFormat("en", { timeStyle: "medium" });

const STEPS = [
  ["year", 365 * 24 * 60 * 60_000],
  ["month", 30 * 24 * 60 * 60_000],
  ["day", 24 * 60 * 60_000],
  ["hour", 60 * 60_000],
  ["minute", 60_000],
] as const;

/** A moment from now: `3 minutes ago`, `in 2 days`, `just now`. */
export function formatFromNow(time: Timestamp, nowMs = Date.now()): string {
  const difference = timestampMs(time) - nowMs;
  const [unit, length] = STEPS.find(([, lengthMs]) => Math.abs(difference) >= lengthMs) ?? [];
  if (unit === undefined) return difference > 0 ? "in less than a minute" : "just now";
  return RELATIVE.format(Math.round(difference / length), unit);
}

/** The time of day, for a moment of this day: `1:05:30 PM`. */
export function formatClock(time: Timestamp): string {
  return CLOCK.format(timestampMs(time));
}

/** A moment in the reader's own time zone: `Nov 21, 2026, 1:05 PM`. */
export function formatMoment(time: Timestamp): string {
  return EXACT.format(timestampMs(time));
}
