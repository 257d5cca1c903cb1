import type { FailureCode } from "../../../src/core/failure.ts";

/** External form of a failure over gRPC and in OpenAI's formats; other formats have statuses and words of their own. */
interface Look {
  /** Status and `error.type`. */
  readonly http: string;
  /** `error.code`, unless a detail replaces it. */
  readonly code: string | null;
  readonly grpc: string;
  /** Whether the response has a retry-after. */
  readonly waits?: true;
  /** Whether the response says not to retry. */
  readonly final?: true;
}

/**
 * Documented failures, written independently, because these scenarios test the product's own table. `cancelled` has no
 * response.
 */
export const LOOKS: Readonly<Record<Exclude<FailureCode, "cancelled">, Look>> = {
  invalid_request: { http: "400 invalid_request_error", code: null, grpc: "INVALID_ARGUMENT" },
  request_too_large: { http: "413 invalid_request_error", code: null, grpc: "RESOURCE_EXHAUSTED" },
  response_too_large: {
    http: "400 invalid_request_error",
    code: "response_too_large",
    grpc: "RESOURCE_EXHAUSTED",
    final: true,
  },
  unauthenticated: { http: "401 authentication_error", code: "absent", grpc: "UNAUTHENTICATED" },
  permission_denied: { http: "403 permission_error", code: null, grpc: "PERMISSION_DENIED" },
  stopped: { http: "403 permission_error", code: "stopped", grpc: "PERMISSION_DENIED", final: true },
  model_not_found: { http: "404 not_found_error", code: "model_not_found", grpc: "NOT_FOUND" },
  not_found: { http: "404 not_found_error", code: null, grpc: "UNIMPLEMENTED" },
  conflict: { http: "409 invalid_request_error", code: "conflict", grpc: "ABORTED", final: true },
  rate_limited: { http: "429 rate_limit_error", code: "rate_limit_exceeded", grpc: "RESOURCE_EXHAUSTED", waits: true },
  budget_spent: {
    http: "429 rate_limit_error",
    code: "budget_exceeded",
    grpc: "RESOURCE_EXHAUSTED",
    waits: true,
    final: true,
  },
  overloaded: { http: "503 service_unavailable", code: "overloaded", grpc: "UNAVAILABLE", waits: true },
  upstream_rejected: { http: "400 invalid_request_error", code: null, grpc: "INVALID_ARGUMENT" },
  upstream_rate_limited: {
    http: "429 rate_limit_error",
    code: "rate_limit_exceeded",
    grpc: "RESOURCE_EXHAUSTED",
    waits: true,
  },
  upstream_unavailable: {
    http: "503 service_unavailable",
    code: "upstream_unavailable",
    grpc: "UNAVAILABLE",
    waits: true,
  },
  upstream_timeout: { http: "503 service_unavailable", code: "upstream_timeout", grpc: "UNAVAILABLE", waits: true },
  upstream_protocol: { http: "500 server_error", code: "upstream_invalid_response", grpc: "INTERNAL", final: true },
  upstream_refused_us: { http: "500 server_error", code: "upstream_auth_error", grpc: "INTERNAL", final: true },
  deadline_exceeded: {
    http: "503 service_unavailable",
    code: "deadline_exceeded",
    grpc: "DEADLINE_EXCEEDED",
    waits: true,
  },
  internal: { http: "500 server_error", code: null, grpc: "INTERNAL", final: true },
};
