import { DAY_MS, HOUR_MS } from "./view.ts";

const UTC = { timeZone: "UTC" } as const;
const DAY = new Intl.DateTimeFormat("en", { ...UTC, month: "short", day: "numeric" });
const DAY_OF_YEAR = new Intl.DateTimeFormat("en", { ...UTC, month: "short", day: "numeric", year: "numeric" });
const HOUR = new Intl.DateTimeFormat("en", { ...UTC, hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

/** A step where there is little room: `Nov 3`, or `17:00`. All times of usage are UTC, in which its days are. */
export function shortStep(atMs: number, stepMs: number): string {
  return stepMs < DAY_MS && atMs % DAY_MS !== 0 ? HOUR.format(atMs) : DAY.format(atMs);
}

/** A step in full: `Nov 3, 2026`, or `Nov 3, 17:00`. */
export function fullStep(atMs: number, stepMs: number): string {
  return stepMs < DAY_MS ? `${DAY.format(atMs)}, ${HOUR.format(atMs)}` : DAY_OF_YEAR.format(atMs);
}

/** From when to when, for a person. */
export function formatSpan({ sinceMs, untilMs }: { readonly sinceMs: number; readonly untilMs: number }): string {
  return `${fullStep(sinceMs, HOUR_MS)} to ${fullStep(untilMs, HOUR_MS)} UTC`;
}

/** A step for programs: `2026-11-03`, or `2026-11-03T17:00:00Z`. */
export function isoStep(atMs: number, stepMs: number): string {
  const text = new Date(atMs).toISOString();
  return stepMs < DAY_MS ? text.replace(".000", "") : text.slice(0, 10);
}

/** The name of a file of usage: what it has, and from when to when. */
export function fileName(
  parts: readonly string[],
  { sinceMs, untilMs }: { readonly sinceMs: number; readonly untilMs: number },
): string {
  const [since, until] = [sinceMs, untilMs].map((atMs) => new Date(atMs).toISOString().slice(0, 13).replace("T", "-"));
  return `${["parley-usage", ...parts, since, "to", until].filter((part) => part !== "").join("-")}.csv`;
}

/** A moment in UTC: `Nov 3, 17:04`. */
export function formatMoment(atMs: number): string {
  return `${DAY.format(atMs)}, ${HOUR.format(atMs)} UTC`;
}
