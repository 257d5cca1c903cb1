import { parseDuration, UsageError } from "./command.ts";

/** Reads a date or an age into Unix milliseconds. Throws UsageError that names the flag. */
export function readMoment(text: string, flag: string, nowMs: number): number {
  const ageMs = parseDuration(text);
  if (ageMs !== undefined) return nowMs - ageMs;
  const atMs = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?Z)?$/.test(text) ? Date.parse(text) : NaN;
  if (!Number.isNaN(atMs)) return atMs;
  throw new UsageError(
    `${flag} is a date in UTC such as 2026-11-01 or 2026-11-01T12:00Z, or an age such as 24h or 30d`,
  );
}
