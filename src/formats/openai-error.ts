import type { Failure } from "../core/failure.ts";
import { errorCode, FAILURE_TABLE } from "../inbound/failure-table.ts";
import { writeAttempt } from "./report.ts";

/** Converts a failure to OpenAI's error body. A 401 has no `code`; `attempts` is present when models were tried. */
export function toErrorBody(failure: Failure): object {
  const { type } = FAILURE_TABLE[failure.code];
  return {
    error: {
      message: failure.message,
      type,
      param: failure.param ?? null,
      ...(failure.code !== "unauthenticated" && { code: errorCode(failure) }),
      ...(failure.attempts.length > 0 && { attempts: failure.attempts.map(writeAttempt) }),
    },
  };
}

/** A failure as the last event of a stream: only an `error` key, because clients ignore one beside `choices`. */
export function toErrorEvent(failure: Failure): string {
  return `data: ${JSON.stringify(toErrorBody(failure))}\n\n`;
}
