import type { Refusal } from "./response.ts";

type Headers = Refusal["headers"];

/** What a refusal's headers say about another try. */
export interface RetryAdvice {
  /** How long it asks to wait; undefined when it does not say, or not in a way that can be read. */
  readonly retryAfterMs: number | undefined;
  /** Whether it says that the same call will fail again. */
  readonly final: boolean;
}

/** Reads `retry-after-ms`, `retry-after` and `x-should-retry`. */
export function readRetryAdvice(headers: Headers): RetryAdvice {
  return { retryAfterMs: readRetryAfterMs(headers), final: first(headers["x-should-retry"]).trim() === "false" };
}

/** `retry-after-ms`, or `retry-after` as seconds or as a date, which is read against the answer's own `date`. */
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

/** Of a header that was sent twice, the first counts. */
function first(header: string | string[] | undefined): string {
  return (Array.isArray(header) ? header[0] : header) ?? "";
}
