import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { anyPack, anyUnpack, durationMs } from "@bufbuild/protobuf/wkt";
import { createRegistry } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { ErrorReason } from "../../gen/parley/v1/error_pb.js";
import { AttemptListSchema, AttemptOutcome } from "../../gen/parley/v1/report_pb.js";
import { Failure } from "../../src/core/failure.ts";
import { errorDetails } from "../../src/inbound/error-details.ts";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import { attemptOf } from "../support/attempt.ts";

const registry = createRegistry(ErrorInfoSchema, BadRequestSchema, RetryInfoSchema, AttemptListSchema);

/** The details as a client unpacks them from the wire, by their type names. */
function received(failure: Failure) {
  const details = errorDetails(failure, "req_1").map(({ desc, value }) => {
    const bytes = toBinary(AnySchema, anyPack(desc, create(desc, value)));
    return anyUnpack(fromBinary(AnySchema, bytes), registry)!;
  });
  return Object.fromEntries(details.map((detail) => [detail.$typeName, detail]));
}

describe("the details of a failure", () => {
  it("always name the reason, our domain and the request", () => {
    expect(received(new Failure("internal", "no"))).toEqual({
      "google.rpc.ErrorInfo": create(ErrorInfoSchema, {
        reason: "INTERNAL",
        domain: "parley",
        metadata: { request_id: "req_1" },
      }),
    });
  });

  it("have the code that the HTTP entrance would show", () => {
    const failure = new Failure("upstream_unavailable", "Busy.", { detail: "upstream_overloaded" });
    expect(received(failure)["google.rpc.ErrorInfo"]).toMatchObject({
      reason: "UPSTREAM_UNAVAILABLE",
      metadata: { error_code: "upstream_overloaded" },
    });
  });

  it("have a reason of its own for a request that does not fit into the context window, also of the attempt", () => {
    const detail = "context_length_exceeded";
    const attempts = [attemptOf({ outcome: "upstream_rejected", detail, upstreamStatus: 400, reason: "Long." })];
    const details = received(new Failure("upstream_rejected", "Long.", { detail, attempts }));
    expect(details["google.rpc.ErrorInfo"]).toMatchObject({
      reason: "CONTEXT_LENGTH_EXCEEDED",
      metadata: { error_code: "context_length_exceeded" },
    });
    expect(details["parley.v1.AttemptList"]).toMatchObject({
      attempts: [{ failureReason: ErrorReason.CONTEXT_LENGTH_EXCEEDED }],
    });
  });

  it("name every wrong field", () => {
    const violations = [
      { field: "temperature", description: "must be between 0 and 2" },
      { field: "messages[3].content", description: "must not be empty" },
    ];
    const { "google.rpc.BadRequest": detail } = received(new Failure("invalid_request", "no", { violations }));
    expect(detail).toMatchObject({ fieldViolations: violations });
  });

  it.each([
    [1_500, 1_500],
    [1_500.2, 1_501],
    [90_000, 60_000],
  ])("of a wait of %s ms say %s ms", (given, told) => {
    const details = received(new Failure("upstream_rate_limited", "Slow.", { retryAfterMs: given }));
    const retry = details["google.rpc.RetryInfo"] as ReturnType<typeof create<typeof RetryInfoSchema>>;
    expect(durationMs(retry.retryDelay!)).toBe(told);
  });

  it("list the attempts", () => {
    const attempts = [attemptOf({ outcome: "upstream_timeout", upstreamStatus: 504, reason: "Late.", durationMs: 7 })];
    const { "parley.v1.AttemptList": detail } = received(new Failure("upstream_timeout", "Late.", { attempts }));
    expect(detail).toMatchObject({
      attempts: [
        {
          model: "m",
          outcome: AttemptOutcome.FAILED,
          failureReason: ErrorReason.UPSTREAM_TIMEOUT,
          httpStatusCode: 504,
          message: "Late.",
          duration: { seconds: 0n, nanos: 7_000_000 },
        },
      ],
    });
  });
});
