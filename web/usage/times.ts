import { LOCALE } from "../format/locale.ts";
import { DAY_MS, type Period, type Step } from "./steps.ts";

const DAY = new Intl.DateTimeFormat(LOCALE, { month: "short", day: "numeric" });
const DAY_OF_YEAR = new Intl.DateTimeFormat(LOCALE, { month: "short", day: "numeric", year: "numeric" });
const CLOCK = new Intl.DateTimeFormat(LOCALE, { timeStyle: "short" });
const ZONE = new Intl.DateTimeFormat(LOCALE, { timeZoneName: "short" });

/** Formats a step in short form: `Nov 3`, or `17:00`. All times are in the reader's time zone. */
export function shortStep(atMs: number, { lengthMs }: Pick<Step, "lengthMs">): string {
  return lengthMs < DAY_MS && !isMidnight(atMs) ? CLOCK.format(atMs) : DAY.format(atMs);
}

function isMidnight(atMs: number): boolean {
  const time = new Date(atMs);
  return time.getHours() === 0 && time.getMinutes() === 0;
}

/** Formats a step in full: `Nov 3, 2026`, or `Nov 3, 17:00`. */
export function fullStep(atMs: number, { lengthMs }: Pick<Step, "lengthMs">): string {
  return lengthMs < DAY_MS ? formatMoment(atMs) : DAY_OF_YEAR.format(atMs);
}

/** Formats a time: `Nov 3, 17:04`. */
export function formatMoment(atMs: number): string {
  return `${DAY.format(atMs)}, ${CLOCK.format(atMs)}`;
}

/** Formats a period for display, with the time zone: `Nov 3, 17:04 to Nov 4, 17:00 GMT+1`. */
export function formatSpan({ sinceMs, untilMs }: Period): string {
  const zone = ZONE.formatToParts(untilMs).find(({ type }) => type === "timeZoneName")?.value ?? "";
  return `${formatMoment(sinceMs)} to ${formatMoment(untilMs)} ${zone}`.trim();
}

/** Formats a step in ISO 8601: `2026-11-03` of the reader's day, or `2026-11-03T17:00:00Z`. */
export function isoStep(atMs: number, { lengthMs }: Pick<Step, "lengthMs">): string {
  if (lengthMs < DAY_MS) return new Date(atMs).toISOString().replace(".000", "");
  const time = new Date(atMs);
  return [time.getFullYear(), time.getMonth() + 1, time.getDate()]
    .map((part) => String(part).padStart(2, "0"))
    .join("-");
}

/** Returns the file name of a usage export: parts and period in UTC. */
export function fileName(parts: readonly string[], { sinceMs, untilMs }: Period): string {
  const [since, until] = [sinceMs, untilMs].map((atMs) =>
    new Date(atMs).toISOString().slice(0, 16).replace("T", "-").replace(":", ""),
  );
  return `${["parley-usage", ...parts, since, "to", until].filter((part) => part !== "").join("-")}.csv`;
}

/**
 * Returns the positions of steps on the axis of a chart, and the time at a position. The axis has its ticks at
 * multiples, so positions are local times: days by the calendar, other steps with the time zone offset of the first
 * step.
 */
export function axisOf(
  steps: readonly number[],
  { lengthMs }: Pick<Step, "lengthMs">,
): { readonly positions: readonly number[]; readonly timeAt: (position: number) => number } {
  if (lengthMs === DAY_MS)
    return {
      positions: steps.map((atMs) => {
        const day = new Date(atMs);
        return Date.UTC(day.getFullYear(), day.getMonth(), day.getDate());
      }),
      timeAt: (position) => {
        const day = new Date(position);
        return new Date(day.getUTCFullYear(), day.getUTCMonth(), day.getUTCDate()).getTime();
      },
    };
  const offsetMs = -new Date(steps[0] ?? 0).getTimezoneOffset() * 60_000;
  return { positions: steps.map((atMs) => atMs + offsetMs), timeAt: (position) => position - offsetMs };
}
