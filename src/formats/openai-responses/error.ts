import type { Failure } from "../../core/failure.ts";
import { FAILURE_TABLE } from "../../inbound/failure-table.ts";

const TOO_MANY_REQUESTS = 429;

/** `error` of a response that failed after it began. Its codes differ from those of an error response. */
export function toResponseError(failure: Failure): object {
  const isLimited = FAILURE_TABLE[failure.code].http === TOO_MANY_REQUESTS;
  const code = isLimited ? "rate_limit_exceeded" : "server_error";
  return {
    code: failure.detail === "context_length_exceeded" ? failure.detail : code,
    message: failure.message,
  };
}
