import { describe, expect, it } from "vitest";
import type { FailureCode, FailureDetail } from "../../../src/core/failure.ts";
import { toFailure, toInBandFailure } from "../../../src/providers/gemini/failure.ts";
import { object } from "../../../src/providers/wire/json.ts";
import type { Refusal } from "../../../src/providers/wire/response.ts";
import { bytesOf, jsonOf } from "./fixture.ts";

const refusal = (status: number, body: unknown = "", headers: Refusal["headers"] = {}): Refusal => ({
  status,
  headers,
  body: typeof body === "string" ? body : JSON.stringify(body),
});

const error = (status: string, message = "", ...details: object[]): object => ({ error: { status, message, details } });
const info = (kind: string, fields: object): object => ({
  "@type": `type.googleapis.com/google.rpc.${kind}`,
  ...fields,
});

describe("the fixtures", () => {
  it.each<[string, number, object]>([
    ["32-gemini-error-429", 429, { code: "upstream_rate_limited", retryAfterMs: 45_838, transient: true }],
    ["33-gemini-error-bad-key", 400, { code: "upstream_refused_us", transient: false }],
  ])("%s (trap 24, 25)", (scenario, status, expected) => {
    const failure = toFailure(refusal(status, bytesOf(scenario, "upstream-response.json").toString("utf8")));
    const { message } = object(object(jsonOf(scenario, "expected-openai.json"))["error"]);
    expect(failure).toMatchObject({ ...expected, message, upstreamStatus: status });
  });
});

describe("a refusal", () => {
  it.each<[number, string, FailureCode, boolean, FailureDetail?]>([
    [302, "", "upstream_protocol", false],
    [400, "INVALID_ARGUMENT", "upstream_rejected", false],
    [400, "FAILED_PRECONDITION", "upstream_refused_us", false],
    [401, "UNAUTHENTICATED", "upstream_refused_us", false],
    [402, "", "upstream_refused_us", false],
    [403, "PERMISSION_DENIED", "upstream_refused_us", false],
    [404, "NOT_FOUND", "upstream_refused_us", false],
    [408, "", "upstream_unavailable", true],
    [409, "ABORTED", "upstream_unavailable", true],
    [413, "", "upstream_rejected", false],
    [415, "", "upstream_rejected", false],
    [418, "", "upstream_protocol", false],
    [422, "", "upstream_rejected", false],
    [429, "RESOURCE_EXHAUSTED", "upstream_rate_limited", true],
    [499, "CANCELLED", "upstream_unavailable", true],
    [500, "INTERNAL", "upstream_unavailable", true],
    [501, "UNIMPLEMENTED", "upstream_unavailable", true],
    [502, "", "upstream_unavailable", true],
    [503, "", "upstream_unavailable", true],
    [503, "UNAVAILABLE", "upstream_unavailable", true, "upstream_overloaded"],
    [504, "DEADLINE_EXCEEDED", "upstream_timeout", true],
    [522, "", "upstream_unavailable", true],
    [529, "", "upstream_unavailable", true, "upstream_overloaded"],
  ])("%i %s is %s, transient %s, %s (trap 27)", (upstreamStatus, word, code, transient, detail) => {
    const expected = { code, transient, detail, upstreamStatus };
    expect(toFailure(refusal(upstreamStatus, error(word)))).toMatchObject(expected);
  });

  it("trap 26: a limit by the day is no rate to wait for", () => {
    const violations = [{ quotaId: "PerMinute" }, { quotaId: "GenerateRequestsPerDayPerProjectPerModel-FreeTier" }];
    const body = error(
      "RESOURCE_EXHAUSTED",
      "",
      info("QuotaFailure", { violations }),
      info("RetryInfo", { retryDelay: "3s" }),
    );
    const expected = { code: "upstream_unavailable", retryAfterMs: 30_000, transient: false };
    expect(toFailure(refusal(429, body))).toMatchObject(expected);
  });

  it("of a conversation that is too long says which field is", () => {
    const message = "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).";
    expect(toFailure(refusal(400, error("INVALID_ARGUMENT", message)))).toMatchObject({
      code: "upstream_rejected",
      detail: "context_length_exceeded",
      param: "messages",
      message,
    });
  });

  it("of a field that we made up is not the caller's fault", () => {
    const message = "Invalid JSON payload received. Unknown name \"foo\" at 'generation_config': Cannot find field.";
    const failure = toFailure(refusal(400, error("INVALID_ARGUMENT", message)));
    expect(failure).toMatchObject({ code: "upstream_protocol", transient: false });
    expect(failure.message).not.toContain("foo");
  });

  it.each([
    ["Bad value at https://ai.google.dev/x?key=1 from a.b@c.test", "Bad value at [address] from [e-mail]"],
    ["Key AIzaSyA1234567890abcdefghij for projects/123456 is bad", "Key [key] for [account] is bad"],
    ["Consumer 'project_number:12' may not", "[account] may not"],
    ["You exceeded your current quota, see billing", "The upstream provider rejected the request."],
    ["  ", "The upstream provider rejected the request."],
    ["Unsupported MIME type: image/tiff", "Unsupported MIME type: image/tiff"],
  ])("says %j as %j (trap 32)", (message, shown) => {
    expect(toFailure(refusal(400, error("INVALID_ARGUMENT", message))).message).toBe(shown);
  });

  it("never shows the provider's words about its own troubles", () => {
    for (const status of [302, 401, 403, 404, 429, 500, 503, 504]) {
      const { message } = toFailure(refusal(status, error("X", "secret-project billing quota")));
      expect(message).not.toMatch(/secret|quota|billing|credit/i);
    }
  });

  it.each<[string, Refusal["headers"], string | undefined, number | undefined]>([
    ["seconds", { "retry-after": "7" }, undefined, 7000],
    ["milliseconds before seconds", { "retry-after-ms": "1500.2", "retry-after": "7" }, undefined, 1501],
    [
      "a date by the provider's clock",
      { "retry-after": "Sat, 21 Nov 2026 10:00:30 GMT", date: "Sat, 21 Nov 2026 10:00:00 GMT" },
      undefined,
      30_000,
    ],
    ["a date without a clock", { "retry-after": "Sat, 21 Nov 2026 10:00:30 GMT" }, undefined, undefined],
    ["its own detail first", { "retry-after": "7" }, "0.5s", 500],
    ["garbage", { "retry-after": "soon" }, "never", undefined],
  ])("waits by %s", (_, headers, retryDelay, retryAfterMs) => {
    const failure = toFailure(refusal(429, error("X", "", info("RetryInfo", { retryDelay })), headers));
    expect(failure.retryAfterMs).toBe(retryAfterMs);
  });

  it.each([
    "",
    "<html>Bad gateway</html>",
    "[]",
    "null",
    "5",
    '"x"',
    '{"error":"text"}',
    '{"error":{"details":{}}}',
    '{"error":{"details":[null]}}',
  ])("trap 29: is named whatever its body is: %s", (body) => {
    expect(toFailure(refusal(502, body)).code).toBe("upstream_unavailable");
    expect(toFailure(refusal(400, body)).message).toBe("The upstream provider rejected the request.");
  });

  it("trap 23: is read out of an array", () => {
    expect(toFailure(refusal(503, [error("UNAVAILABLE")])).detail).toBe("upstream_overloaded");
  });
});

describe("an error inside an answer (trap 22)", () => {
  it.each<[unknown, FailureCode]>([
    [{ error: { code: 400, message: "bad" } }, "upstream_rejected"],
    [{ error: { status: "RESOURCE_EXHAUSTED" } }, "upstream_rate_limited"],
    [{ error: { code: 7, status: "PERMISSION_DENIED" } }, "upstream_refused_us"],
    [{ error: { code: "503" } }, "upstream_unavailable"],
    [{ error: "down" }, "upstream_unavailable"],
    [[{ error: { code: 504 } }], "upstream_timeout"],
  ])("%j is %s", (json, code) => {
    expect(toInBandFailure(json, { begun: false })).toMatchObject({ code, upstreamStatus: 200 });
  });
});
