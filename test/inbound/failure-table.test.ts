import { Code } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { Failure, type FailureCode } from "../../src/core/failure.ts";
import { errorCode, FAILURE_TABLE, isFinal, retryAfterMs } from "../../src/inbound/failure-table.ts";
import type { Attempt } from "../../src/core/attempt.ts";
import { attemptOf } from "../support/attempt.ts";

/** What is documented for callers, written out. No caller sees `cancelled`. */
const DOCUMENTED: Readonly<
  Record<FailureCode, readonly [http: number, type: string, code: string | null, grpc: string]>
> = {
  invalid_request: [400, "invalid_request_error", null, "InvalidArgument"],
  request_too_large: [413, "invalid_request_error", null, "ResourceExhausted"],
  response_too_large: [400, "invalid_request_error", "response_too_large", "ResourceExhausted"],
  unauthenticated: [401, "authentication_error", null, "Unauthenticated"],
  permission_denied: [403, "permission_error", null, "PermissionDenied"],
  stopped: [403, "permission_error", "stopped", "PermissionDenied"],
  model_not_found: [404, "not_found_error", "model_not_found", "NotFound"],
  not_found: [404, "not_found_error", null, "Unimplemented"],
  conflict: [409, "invalid_request_error", "conflict", "Aborted"],
  rate_limited: [429, "rate_limit_error", "rate_limit_exceeded", "ResourceExhausted"],
  budget_spent: [429, "rate_limit_error", "budget_exceeded", "ResourceExhausted"],
  overloaded: [503, "service_unavailable", "overloaded", "Unavailable"],
  upstream_rejected: [400, "invalid_request_error", null, "InvalidArgument"],
  upstream_rate_limited: [429, "rate_limit_error", "rate_limit_exceeded", "ResourceExhausted"],
  upstream_unavailable: [503, "service_unavailable", "upstream_unavailable", "Unavailable"],
  upstream_timeout: [503, "service_unavailable", "upstream_timeout", "Unavailable"],
  upstream_protocol: [500, "server_error", "upstream_invalid_response", "Internal"],
  upstream_refused_us: [500, "server_error", "upstream_auth_error", "Internal"],
  deadline_exceeded: [503, "service_unavailable", "deadline_exceeded", "DeadlineExceeded"],
  cancelled: [499, "invalid_request_error", null, "Canceled"],
  internal: [500, "server_error", null, "Internal"],
};

const CODES = Object.keys(FAILURE_TABLE) as FailureCode[];

it("every failure is documented, and nothing else is", () => {
  expect(CODES).toEqual(Object.keys(DOCUMENTED));
});

it.each(CODES)("%s is on the wire what is documented", (code) => {
  const { http, type, code: errorCodeOf, grpc } = FAILURE_TABLE[code];
  expect([http, type, errorCodeOf, Code[grpc]]).toEqual(DOCUMENTED[code]);
});

it("gRPC statuses have the numbers that gRPC gives them", () => {
  const numbers = CODES.map((code) => FAILURE_TABLE[code].grpc as number);
  expect(numbers).toEqual([3, 8, 8, 16, 7, 7, 5, 12, 10, 8, 8, 14, 3, 8, 14, 14, 13, 13, 4, 1, 13]);
});

describe("error.code", () => {
  it("is the detail where clients act on the difference, else that of the table", () => {
    expect(errorCode(new Failure("upstream_rejected", "Long.", { detail: "context_length_exceeded" }))).toBe(
      "context_length_exceeded",
    );
    expect(errorCode(new Failure("upstream_unavailable", "Busy.", { detail: "upstream_overloaded" }))).toBe(
      "upstream_overloaded",
    );
    expect(errorCode(new Failure("upstream_rejected", "No."))).toBeNull();
    expect(errorCode(new Failure("rate_limited", "Slow."))).toBe("rate_limit_exceeded");
  });
});

describe("retry-after", () => {
  it("is sent with every 429 and 503, and with nothing else", () => {
    for (const code of CODES) {
      const told = retryAfterMs(new Failure(code, "no", { retryAfterMs: 2_000 }));
      const expected = [429, 503].includes(FAILURE_TABLE[code].http) ? 2_000 : undefined;
      expect(told, code).toBe(expected);
    }
  });

  it.each([
    [undefined, 5_000],
    [0, 1_000],
    [-5, 1_000],
    [999, 1_000],
    [1_000, 1_000],
    [1_500, 1_500],
    [60_000, 60_000],
    [60_001, 60_000],
    [Infinity, 60_000],
  ])("of %s ms is sent as %s ms", (given, told) => {
    const failure = new Failure("upstream_rate_limited", "Slow.", given === undefined ? {} : { retryAfterMs: given });
    expect(retryAfterMs(failure)).toBe(told);
  });
});

describe("a client's own retry", () => {
  const attempt = (model: string, outcome: Attempt["outcome"]) => attemptOf({ model, outcome });

  it.each(CODES)("after %s is pointless only where nothing would change", (code) => {
    const pointless = [
      "response_too_large",
      "stopped",
      "budget_spent",
      "upstream_protocol",
      "upstream_refused_us",
      "internal",
      "conflict",
    ].includes(code);
    expect(isFinal(new Failure(code, "no"))).toBe(pointless);
  });

  it("is left alone after attempts at one model", () => {
    const attempts = [attempt("a", "upstream_unavailable"), attempt("a", "upstream_unavailable")];
    expect(isFinal(new Failure("upstream_unavailable", "no", { attempts }))).toBe(false);
  });

  it("is pointless after attempts at several models", () => {
    const attempts = [attempt("a", "upstream_unavailable"), attempt("b", "upstream_timeout")];
    expect(isFinal(new Failure("upstream_unavailable", "no", { attempts }))).toBe(true);
  });

  it("is left alone when the other models were only skipped", () => {
    const attempts = [attempt("a", "upstream_unavailable"), attempt("b", "skipped")];
    expect(isFinal(new Failure("upstream_unavailable", "no", { attempts }))).toBe(false);
  });
});
