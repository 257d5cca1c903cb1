import { DAY_MS, HOUR_MS } from "./view.ts";

const UTC = { timeZone: "UTC" } as const;
const DAY = new Intl.DateTimeFormat("en", { ...UTC, month: "short", day: "numeric" });
const DAY_OF_YEAR = new Intl.DateTimeFormat("en", { ...UTC, month: "short", day: "numeric", year: "numeric" });
const HOUR = new Intl.DateTimeFormat("en", { ...UTC, hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

/** Formats a step in short form: `Nov 3`, or `17:00`. All usage times are UTC, because its days are UTC days. */
export function shortStep(atMs: number, stepMs: number): string {
  return stepMs < DAY_MS && atMs % DAY_MS !== 0 ? HOUR.format(atMs) : DAY.format(atMs);
}

/** Formats a step in full: `Nov 3, 2026`, or `Nov 3, 17:00`. */
export function fullStep(atMs: number, stepMs: number): string {
  return stepMs < DAY_MS ? `${DAY.format(atMs)}, ${HOUR.format(atMs)}` : DAY_OF_YEAR.format(atMs);
}

/** Formats a period for display. */
export function formatSpan({ sinceMs, untilMs }: { readonly sinceMs: number; readonly untilMs: number }): string {
  return `${fullStep(sinceMs, HOUR_MS)} to ${fullStep(untilMs, HOUR_MS)} UTC`;
}

/** Formats a step in ISO 8601: `2026-11-03`, or `2026-11-03T17:00:00Z`. */
export function isoStep(atMs: number, stepMs: number): string {
  const text = new Date(atMs).toISOString();
  return stepMs < DAY_MS ? text.replace(".000", "") : text.slice(0, 10);
}

/** Returns the file name of a usage export: parts and period. */
export function fileName(
  parts: readonly string[],
  { sinceMs, untilMs }: { readonly sinceMs: number; readonly untilMs: number },
): string {
  const [since, until] = [sinceMs, untilMs].map((atMs) => new Date(atMs).toISOString().slice(0, 13).replace("T", "-"));
  return `${["parley-usage", ...parts, since, "to", until].filter((part) => part !== "").join("-")}.csv`;
}

/** Formats a time in UTC: `Nov 3, 17:04 UTC`. */
export function formatMoment(atMs: number): string {
  return `${DAY.format(atMs)}, ${HOUR.format(atMs)} UTC`;
}
