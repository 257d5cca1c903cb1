import type { Failure, FailureCode } from "../core/failure.ts";

/** Numbers of the gRPC statuses that failures use. */
const GRPC = {
  CANCELLED: 1,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  ABORTED: 10,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  UNAUTHENTICATED: 16,
} as const;

/** The gRPC statuses as pairs of name and number. */
export const GRPC_STATUS = Object.entries(GRPC);

type GrpcStatus = (typeof GRPC)[keyof typeof GRPC];

/** Mapping of a failure code to the wire. `docs/errors.md` shows this table. */
export interface FailureRow {
  readonly http: number;
  /** `error.type` of the OpenAI format. */
  readonly type: string;
  /** `error.code` of the OpenAI format; null where there is none. Absent altogether for `unauthenticated`. */
  readonly code: string | null;
  readonly grpc: GrpcStatus;
  /** Whether a retry by the client is pointless: then `x-should-retry: false` is sent. */
  readonly final: boolean;
}

/** All failures. A 499 is never received: its caller has disconnected. */
export const FAILURE_TABLE = {
  invalid_request: { http: 400, type: "invalid_request_error", code: null, grpc: GRPC.INVALID_ARGUMENT, final: false },
  request_too_large: {
    http: 413,
    type: "invalid_request_error",
    code: null,
    grpc: GRPC.RESOURCE_EXHAUSTED,
    final: false,
  },
  // Only gRPC and Connect have it.
  response_too_large: {
    http: 400,
    type: "invalid_request_error",
    code: "response_too_large",
    grpc: GRPC.RESOURCE_EXHAUSTED,
    final: true,
  },
  unauthenticated: { http: 401, type: "authentication_error", code: null, grpc: GRPC.UNAUTHENTICATED, final: false },
  permission_denied: { http: 403, type: "permission_error", code: null, grpc: GRPC.PERMISSION_DENIED, final: false },
  stopped: { http: 403, type: "permission_error", code: "stopped", grpc: GRPC.PERMISSION_DENIED, final: true },
  model_not_found: { http: 404, type: "not_found_error", code: "model_not_found", grpc: GRPC.NOT_FOUND, final: false },
  not_found: { http: 404, type: "not_found_error", code: null, grpc: GRPC.UNIMPLEMENTED, final: false },
  // Only the dashboard has it.
  conflict: { http: 409, type: "invalid_request_error", code: "conflict", grpc: GRPC.ABORTED, final: true },
  rate_limited: {
    http: 429,
    type: "rate_limit_error",
    code: "rate_limit_exceeded",
    grpc: GRPC.RESOURCE_EXHAUSTED,
    final: false,
  },
  budget_spent: {
    http: 429,
    type: "rate_limit_error",
    code: "budget_exceeded",
    grpc: GRPC.RESOURCE_EXHAUSTED,
    final: true,
  },
  overloaded: { http: 503, type: "service_unavailable", code: "overloaded", grpc: GRPC.UNAVAILABLE, final: false },
  upstream_rejected: {
    http: 400,
    type: "invalid_request_error",
    code: null,
    grpc: GRPC.INVALID_ARGUMENT,
    final: false,
  },
  upstream_rate_limited: {
    http: 429,
    type: "rate_limit_error",
    code: "rate_limit_exceeded",
    grpc: GRPC.RESOURCE_EXHAUSTED,
    final: false,
  },
  upstream_unavailable: {
    http: 503,
    type: "service_unavailable",
    code: "upstream_unavailable",
    grpc: GRPC.UNAVAILABLE,
    final: false,
  },
  upstream_timeout: {
    http: 503,
    type: "service_unavailable",
    code: "upstream_timeout",
    grpc: GRPC.UNAVAILABLE,
    final: false,
  },
  upstream_protocol: {
    http: 500,
    type: "server_error",
    code: "upstream_invalid_response",
    grpc: GRPC.INTERNAL,
    final: true,
  },
  upstream_refused_us: {
    http: 500,
    type: "server_error",
    code: "upstream_auth_error",
    grpc: GRPC.INTERNAL,
    final: true,
  },
  deadline_exceeded: {
    http: 503,
    type: "service_unavailable",
    code: "deadline_exceeded",
    grpc: GRPC.DEADLINE_EXCEEDED,
    final: false,
  },
  cancelled: { http: 499, type: "invalid_request_error", code: null, grpc: GRPC.CANCELLED, final: false },
  internal: { http: 500, type: "server_error", code: null, grpc: GRPC.INTERNAL, final: true },
} as const satisfies Record<FailureCode, FailureRow>;

/** Range of `retry-after`: official clients ignore more than a minute, or give up. */
const RETRY_AFTER_MS = [1000, 60_000] as const;
/** Default of `retry-after`. */
const DEFAULT_RETRY_AFTER_MS = 5000;

/** Wait before a retry by the caller in milliseconds; undefined when waiting does not help. */
export function retryAfterMs(failure: Failure): number | undefined {
  const { http } = FAILURE_TABLE[failure.code];
  if (http !== 429 && http !== 503) return undefined;
  const [min, max] = RETRY_AFTER_MS;
  return Math.min(Math.max(failure.retryAfterMs ?? DEFAULT_RETRY_AFTER_MS, min), max);
}

/** Whether the client should not retry: the result would not change, or other models were tried already. */
export function isFinal(failure: Failure): boolean {
  const tried = failure.attempts.filter((attempt) => attempt.outcome !== "skipped").map((attempt) => attempt.model);
  return FAILURE_TABLE[failure.code].final || new Set(tried).size > 1;
}

/** `error.code` of the OpenAI format. */
export function errorCode(failure: Failure): string | null {
  return failure.detail ?? FAILURE_TABLE[failure.code].code;
}
