import type { Refusal } from "../answer.ts";
import { type Json, string } from "../lenient.ts";

/** A protobuf duration in JSON, such as `45.837906927s`. */
const DURATION = /^(\d{1,9}(?:\.\d{1,9})?)s$/;

/** How long the provider asks to wait, by its `RetryInfo` or its headers, in whole milliseconds, rounded up. */
export function readRetryDelay(retryInfo: Json, headers: Refusal["headers"]): number | undefined {
  const seconds = DURATION.exec(string(retryInfo["retryDelay"]))?.[1];
  if (seconds !== undefined) return Math.ceil(Number(seconds) * 1000);
  const ms = positive(headers["retry-after-ms"]);
  if (ms !== undefined) return Math.ceil(ms);
  const after = positive(headers["retry-after"]);
  return after === undefined ? untilDate(headers) : Math.ceil(after * 1000);
}

/** An HTTP date, measured against the provider's own clock rather than ours. */
function untilDate(headers: Refusal["headers"]): number | undefined {
  const wait = Date.parse(string(headers["retry-after"])) - Date.parse(string(headers["date"]));
  return wait >= 0 ? wait : undefined;
}

function positive(header: unknown): number | undefined {
  return /^\d{1,9}(?:\.\d{1,9})?$/.test(string(header)) ? Number(header) : undefined;
}
