import { describe, expect, it } from "vitest";
import { Failure, type FailureCode, invalidField } from "../../../src/core/failure.ts";
import { anthropic } from "../../../src/formats/anthropic/format.ts";

const write = (failure: Failure) => anthropic.writeError(failure, "req_1");

describe("a failure", () => {
  it.each<[FailureCode, number, string]>([
    ["invalid_request", 400, "invalid_request_error"],
    ["upstream_rejected", 400, "invalid_request_error"],
    ["request_too_large", 413, "request_too_large"],
    ["unauthenticated", 401, "authentication_error"],
    ["permission_denied", 403, "permission_error"],
    ["stopped", 403, "permission_error"],
    ["model_not_found", 404, "not_found_error"],
    ["not_found", 404, "not_found_error"],
    ["rate_limited", 429, "rate_limit_error"],
    ["budget_spent", 429, "rate_limit_error"],
    ["upstream_rate_limited", 429, "rate_limit_error"],
    ["overloaded", 503, "overloaded_error"],
    ["upstream_unavailable", 503, "overloaded_error"],
    ["upstream_timeout", 504, "timeout_error"],
    ["deadline_exceeded", 504, "timeout_error"],
    ["upstream_protocol", 500, "api_error"],
    ["upstream_refused_us", 500, "api_error"],
    ["internal", 500, "api_error"],
  ])("%s has the status %i and the type %s", (code, status, type) => {
    expect(write(new Failure(code, "No."))).toEqual({
      status,
      body: { type: "error", error: { type, message: "No." }, request_id: "req_1" },
    });
  });

  it("keeps a provider's words about a prompt that is too long, by which clients compact", () => {
    const message = "prompt is too long: 215000 tokens > 200000 maximum";
    const failure = new Failure("upstream_rejected", message, { detail: "context_length_exceeded" });
    expect(write(failure).body).toMatchObject({ error: { message } });
  });

  it("says those words where another provider says others", () => {
    const failure = new Failure("upstream_rejected", "This model's maximum context length is 8192 tokens.", {
      detail: "context_length_exceeded",
    });
    expect(write(failure).body).toMatchObject({
      error: { message: "prompt is too long: This model's maximum context length is 8192 tokens." },
    });
  });

  it("has the attempts that were made", () => {
    const attempt = { model: "m", outcome: "upstream_timeout", reason: "late", startMs: 1, durationMs: 2 } as const;
    const failure = new Failure("upstream_timeout", "No.", { attempts: [{ ...attempt, upstreamStatus: undefined }] });
    expect(write(failure).body).toMatchObject({ parley: { attempts: [{ model: "m", reason: "late" }] } });
  });

  it("of a thread makes clients send the whole conversation", () => {
    expect(write(invalidField("thread", "no")).body).toMatchObject({
      error: { details: { error_code: "thread_unsupported_request" } },
    });
    expect(write(invalidField("model", "no")).body).not.toHaveProperty("error.details");
  });
});

describe("headers", () => {
  it("have the request's ID under the vendor's name", () => {
    expect(anthropic.responseHeaders?.("req_1")).toEqual([["request-id", "req_1"]]);
  });

  it("have the caller's limits, with the time of their end", () => {
    const requests = { limit: 60, remaining: 59, resetMs: 1500 };
    expect(anthropic.limitHeaders?.({ requests, tokens: undefined }, Date.UTC(2026, 0, 1))).toEqual([
      ["anthropic-ratelimit-requests-limit", "60"],
      ["anthropic-ratelimit-requests-remaining", "59"],
      ["anthropic-ratelimit-requests-reset", "2026-01-01T00:00:01.500Z"],
    ]);
    const tokens = { limit: 10, remaining: 0, resetMs: 0 };
    const both = anthropic.limitHeaders?.({ requests, tokens }, 0) ?? [];
    expect(both.map(([name]) => name)).toContain("anthropic-ratelimit-tokens-remaining");
  });
});
