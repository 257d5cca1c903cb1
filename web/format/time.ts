import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { ENGLISH, LOCALE } from "./locale.ts";

const RELATIVE = new Intl.RelativeTimeFormat(ENGLISH, { numeric: "auto" });
const EXACT = new Intl.DateTimeFormat(LOCALE, { dateStyle: "medium", timeStyle: "short" });
const CLOCK = new Intl.DateTimeFormat(LOCALE, { timeStyle: "medium" });
const DATE = new Intl.DateTimeFormat(LOCALE, { dateStyle: "short" });
const DAY = new Intl.DateTimeFormat(LOCALE, { month: "short", day: "numeric" });
const UTC_DATE = new Intl.DateTimeFormat(LOCALE, { dateStyle: "medium", timeZone: "UTC" });
const PRECISE = new Intl.DateTimeFormat(LOCALE, { dateStyle: "medium", timeStyle: "long" });

const STEPS = [
  ["year", 365 * 24 * 60 * 60_000],
  ["month", 30 * 24 * 60 * 60_000],
  ["day", 24 * 60 * 60_000],
  ["hour", 60 * 60_000],
  ["minute", 60_000],
] as const;

/** Formats a time relative to now: `3 minutes ago`, `in 2 days`, `just now`. */
export function formatFromNow(time: Timestamp, nowMs = Date.now()): string {
  const difference = timestampMs(time) - nowMs;
  const [unit, length] = STEPS.find(([, lengthMs]) => Math.abs(difference) >= lengthMs) ?? [];
  if (unit === undefined) return difference > 0 ? "in less than a minute" : "just now";
  return RELATIVE.format(Math.round(difference / length), unit);
}

/** Formats a time in the local time zone: `Nov 21, 2026, 1:05 PM`. */
export function formatMoment(time: Timestamp): string {
  return EXACT.format(timestampMs(time));
}

/** Formats the date of a time in UTC: `Nov 21, 2026`. */
export function formatUtcDate(time: Timestamp): string {
  return UTC_DATE.format(timestampMs(time));
}

/** Formats a time with seconds and time zone: `Nov 21, 2026, 1:05:09 PM GMT+1`. */
export function formatPreciseMoment(time: Timestamp): string {
  return PRECISE.format(timestampMs(time));
}

/** Formats the time of day, `1:05:09 PM`, and the day, `Nov 20`, unless it is today. In the local time zone. */
export function formatClock(
  time: Timestamp,
  nowMs = Date.now(),
): { readonly clock: string; readonly day: string | undefined } {
  const ms = timestampMs(time);
  const isToday = DATE.format(ms) === DATE.format(nowMs);
  return { clock: CLOCK.format(ms), day: isToday ? undefined : DAY.format(ms) };
}

/** Formats time of day and day as one text: `1:05:09 PM`, or `Nov 20, 1:05:09 PM`. */
export function formatTime(time: Timestamp): string {
  const { clock, day } = formatClock(time);
  return day === undefined ? clock : `${day}, ${clock}`;
}
