import type { Refusal } from "../answer.ts";

/**
 * How long the provider asks us to wait, in milliseconds: `retry-after-ms`, or `retry-after` in seconds or as a date.
 * A date is taken relative to the answer's own `date`, so that clocks that differ do no harm. Undefined when it does
 * not say.
 */
export function readRetryAfterMs(headers: Refusal["headers"]): number | undefined {
  const ms = readNumber(headers["retry-after-ms"]);
  if (ms !== undefined) return ms;
  const after = headers["retry-after"];
  const seconds = readNumber(after);
  if (seconds !== undefined) return Math.ceil(seconds * 1000);
  const waitMs = Date.parse(first(after)) - Date.parse(first(headers["date"]));
  return Number.isFinite(waitMs) ? Math.max(waitMs, 0) : undefined;
}

function readNumber(header: string | string[] | undefined): number | undefined {
  const text = first(header).trim();
  return /^\d+(\.\d+)?$/.test(text) ? Number(text) : undefined;
}

function first(header: string | string[] | undefined): string {
  return (Array.isArray(header) ? header[0] : header) ?? "";
}
