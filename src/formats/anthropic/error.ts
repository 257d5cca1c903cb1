import type { Failure, FailureCode } from "../../core/failure.ts";
import { FAILURE_TABLE } from "../../inbound/failure-table.ts";
import type { ErrorResponse } from "../format.ts";
import { writeAttempt } from "../report.ts";

/** Timeouts, which have their own status and type in this format. */
const TIMEOUTS: ReadonlySet<FailureCode> = new Set(["upstream_timeout", "deadline_exceeded"]);
const TIMEOUT_STATUS = 504;

/** The vendor's error types by statuses of the failure table; all others are `invalid_request_error`. */
const TYPES: Readonly<Partial<Record<number, string>>> = {
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  500: "api_error",
  503: "overloaded_error",
  [TIMEOUT_STATUS]: "timeout_error",
};

function statusOf({ code }: Failure): number {
  return TIMEOUTS.has(code) ? TIMEOUT_STATUS : FAILURE_TABLE[code].http;
}

/** Clients compact their conversation when an error message contains these words. */
const TOO_LONG = "prompt is too long";

function messageOf({ message, detail }: Failure): string {
  if (detail !== "context_length_exceeded" || message.toLowerCase().includes(TOO_LONG)) return message;
  return `${TOO_LONG}: ${message}`;
}

/** Makes clients send the whole conversation instead of the ID of one that the server stores. */
const NO_THREADS = { details: { error_code: "thread_unsupported_request", unsupported: [] } };

/** Converts a failure to the body of an error. */
export function toErrorBody(failure: Failure, requestId: string): object {
  return {
    type: "error",
    error: {
      type: TYPES[statusOf(failure)] ?? "invalid_request_error",
      message: messageOf(failure),
      ...(failure.param === "thread" && NO_THREADS),
    },
    request_id: requestId,
    ...(failure.attempts.length > 0 && { parley: { attempts: failure.attempts.map(writeAttempt) } }),
  };
}

export function writeError(failure: Failure, requestId: string): ErrorResponse {
  return { status: statusOf(failure), body: toErrorBody(failure, requestId) };
}
