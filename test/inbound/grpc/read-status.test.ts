import { Metadata, type ServiceError, status as Status } from "@grpc/grpc-js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Failure, type FailureCode, type FailureDetail } from "../../../src/core/failure.ts";
import type { LimitFacts, LimitState } from "../../../src/core/limiter.ts";
import { FAILURE_TABLE, isFinal, retryAfterMs } from "../../../src/inbound/failure-table.ts";
import { reportedFailure, failureOfStatus } from "../../../src/inbound/grpc/core-calls.ts";
import { toServiceError } from "../../../src/inbound/grpc/status.ts";

const CODES = Object.keys(FAILURE_TABLE) as FailureCode[];

const text = fc.string({ minLength: 1, maxLength: 40 }).map((each) => each.toWellFormed());
const count = fc.integer({ min: 0, max: 1_000_000 });
const limit: fc.Arbitrary<LimitState | undefined> = fc.option(
  fc.record({ limit: count, remaining: count, resetMs: count.map((seconds) => seconds * 1000) }),
  { nil: undefined },
);
const limits: fc.Arbitrary<LimitFacts> = fc
  .record({ requests: limit, tokens: limit })
  .filter(({ requests, tokens }) => requests !== undefined || tokens !== undefined);
const attempt = fc.record({
  model: text,
  outcome: fc.constantFrom("served", "skipped", ...CODES),
  upstreamStatus: fc.constantFrom(undefined, 503),
  reason: text,
  durationMs: count,
  startMs: count,
});

const failures = fc.record(
  {
    detail: fc.constantFrom<FailureDetail[]>("context_length_exceeded", "upstream_overloaded"),
    violations: fc.array(fc.record({ field: text, description: text }), { maxLength: 3 }),
    retryAfterMs: fc.integer({ min: 0, max: 100_000 }),
    attempts: fc.array(attempt, { maxLength: 3 }),
    limits,
  },
  { requiredKeys: [] },
);

/** What both entrances make of a failure: all that any caller can see. */
function shown(failure: Failure): object {
  const { code, message, detail, violations, attempts, limits: facts } = failure;
  return {
    code,
    message,
    detail,
    attempts,
    limits: facts,
    violations: violations.map(({ field, description }) => ({ field, description })),
    retryAfterMs: retryAfterMs(failure),
    final: isFinal(failure),
  };
}

describe("a failure that crosses from a core to a front", () => {
  it.each(CODES)("is the same there: %s", (code) => {
    fc.assert(
      fc.property(text, failures, (message, options) => {
        const failure = new Failure(code, message, options);
        const crossed = reportedFailure(toServiceError(failure, { requestId: "req_1", limits: failure.limits }));
        expect(crossed).toBeInstanceOf(Failure);
        expect(shown(crossed!)).toEqual(shown(failure));
      }),
    );
  });
});

function libraryError(code: Status, metadata = new Metadata()): ServiceError {
  return Object.assign(new Error("in the library's words"), { code, details: "in the library's words", metadata });
}

describe("a status that no core has said", () => {
  it.each([
    ["no details", new Metadata()],
    ["details that are none", details(Buffer.from([255, 255, 255]))],
    ["details of somebody else", details(Buffer.alloc(0))],
  ])("is known by %s", (_, metadata) => {
    expect(reportedFailure(libraryError(Status.UNAVAILABLE, metadata))).toBeUndefined();
  });

  it.each([
    ["a core that cannot be reached", Status.UNAVAILABLE, false, "overloaded"],
    ["a core that closes before it has answered", Status.CANCELLED, false, "overloaded"],
    ["a core that goes away in the middle", Status.UNAVAILABLE, true, "overloaded"],
    ["a deadline that the library kept", Status.DEADLINE_EXCEEDED, false, "deadline_exceeded"],
    ["a request that is too large for the core", Status.RESOURCE_EXHAUSTED, false, "request_too_large"],
    ["a core that does not know the method", Status.UNIMPLEMENTED, false, "internal"],
    ["an answer that cannot be read", Status.INTERNAL, true, "internal"],
  ] as const)("of %s is of our own making", (_, status, begun, code) => {
    const failure = failureOfStatus(libraryError(status), begun);
    expect(failure.code).toBe(code);
    expect(failure.message).not.toContain("library");
  });
});

function details(bytes: Buffer): Metadata {
  const metadata = new Metadata();
  metadata.set("grpc-status-details-bin", bytes);
  return metadata;
}
