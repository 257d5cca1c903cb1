import type { Refusal } from "./answer.ts";

/**
 * How long a refusal asks to wait, in milliseconds: `retry-after-ms`, or `retry-after` as seconds or as a date, which is
 * read against the answer's own `date`. Undefined when it does not say, or not in a way that can be read.
 */
export function readRetryAfterMs(headers: Refusal["headers"]): number | undefined {
  const exact = readNumber(headers["retry-after-ms"]);
  if (exact !== undefined) return Math.ceil(exact);
  const seconds = readNumber(headers["retry-after"]);
  if (seconds !== undefined) return Math.ceil(seconds * 1000);
  const wait = Date.parse(first(headers["retry-after"])) - Date.parse(first(headers["date"]));
  return Number.isNaN(wait) ? undefined : Math.max(wait, 0);
}

function readNumber(header: string | string[] | undefined): number | undefined {
  const text = first(header).trim();
  return /^\d{1,9}(?:\.\d{1,9})?$/.test(text) ? Number(text) : undefined;
}

/** Of a header that was sent twice, the first counts. */
function first(header: string | string[] | undefined): string {
  return (Array.isArray(header) ? header[0] : header) ?? "";
}
