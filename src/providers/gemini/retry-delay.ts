import type { Refusal } from "../answer.ts";
import { type Json, string } from "../lenient.ts";
import { readRetryAfterMs } from "../retry-after.ts";

/** A protobuf duration in JSON, such as `45.837906927s`. */
const DURATION = /^(\d{1,9}(?:\.\d{1,9})?)s$/;

/** How long the provider asks to wait, by its `RetryInfo` or its headers, in whole milliseconds, rounded up. */
export function readRetryDelay(retryInfo: Json, headers: Refusal["headers"]): number | undefined {
  const seconds = DURATION.exec(string(retryInfo["retryDelay"]))?.[1];
  return seconds === undefined ? readRetryAfterMs(headers) : Math.ceil(Number(seconds) * 1000);
}
