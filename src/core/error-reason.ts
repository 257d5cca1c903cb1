import { ErrorReason } from "../../gen/parley/v1/error_pb.js";
import type { Failure, FailureCode } from "./failure.ts";

/** The parts of a failure that its reason in the contract stands for. */
type Cause = Pick<Failure, "code" | "detail">;

const REASONS: Readonly<Record<FailureCode, ErrorReason>> = {
  invalid_request: ErrorReason.INVALID_REQUEST,
  request_too_large: ErrorReason.REQUEST_TOO_LARGE,
  response_too_large: ErrorReason.RESPONSE_TOO_LARGE,
  unauthenticated: ErrorReason.UNAUTHENTICATED,
  permission_denied: ErrorReason.PERMISSION_DENIED,
  stopped: ErrorReason.STOPPED,
  model_not_found: ErrorReason.MODEL_NOT_FOUND,
  not_found: ErrorReason.METHOD_NOT_FOUND,
  conflict: ErrorReason.CONFLICT,
  rate_limited: ErrorReason.RATE_LIMITED,
  budget_spent: ErrorReason.BUDGET_SPENT,
  overloaded: ErrorReason.OVERLOADED,
  upstream_rejected: ErrorReason.UPSTREAM_REJECTED,
  upstream_rate_limited: ErrorReason.UPSTREAM_RATE_LIMITED,
  upstream_unavailable: ErrorReason.UPSTREAM_UNAVAILABLE,
  upstream_timeout: ErrorReason.UPSTREAM_TIMEOUT,
  upstream_protocol: ErrorReason.UPSTREAM_PROTOCOL,
  upstream_refused_us: ErrorReason.UPSTREAM_REFUSED_US,
  deadline_exceeded: ErrorReason.DEADLINE_EXCEEDED,
  cancelled: ErrorReason.CANCELLED,
  internal: ErrorReason.INTERNAL,
};
const CODES = new Map(Object.entries(REASONS).map(([code, reason]) => [reason, code as FailureCode]));

/** The contract's reason for a failure. */
export function reasonOf({ code, detail }: Cause): ErrorReason {
  return code === "upstream_rejected" && detail === "context_length_exceeded"
    ? ErrorReason.CONTEXT_LENGTH_EXCEEDED
    : // The ledger may have a code of another version.
      (REASONS[code] ?? ErrorReason.UNSPECIFIED);
}

/** The failure that a reason stands for; undefined for a reason of another version. */
export function causeOf(reason: ErrorReason | undefined): Cause | undefined {
  if (reason === ErrorReason.CONTEXT_LENGTH_EXCEEDED)
    return { code: "upstream_rejected", detail: "context_length_exceeded" };
  const code = reason === undefined ? undefined : CODES.get(reason);
  return code && { code, detail: undefined };
}
