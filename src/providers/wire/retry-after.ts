import type { Refusal } from "./response.ts";

type Headers = Refusal["headers"];

/** Retry advice from a refusal's headers. */
export interface RetryAdvice {
  /** Requested delay in ms; undefined if absent or unreadable. */
  readonly retryAfterMs: number | undefined;
  /** Whether the upstream says that a retry will fail. */
  readonly final: boolean;
}

/** Reads `retry-after-ms`, `retry-after` and `x-should-retry`. */
export function readRetryAdvice(headers: Headers): RetryAdvice {
  return { retryAfterMs: readRetryAfterMs(headers), final: first(headers["x-should-retry"]).trim() === "false" };
}

/** `retry-after-ms`, or `retry-after` in seconds or as a date relative to the response's own `date`. */
function readRetryAfterMs(headers: Headers): number | undefined {
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

/** The first value of a repeated header. */
function first(header: string | string[] | undefined): string {
  return (Array.isArray(header) ? header[0] : header) ?? "";
}
