import { describe, expect, it } from "vitest";
import { Failure } from "../../../src/core/failure.ts";
import { toInBandFailure, toFailure } from "../../../src/providers/anthropic/failure.ts";
import type { Refusal } from "../../../src/providers/wire/response.ts";
import { readFixture, readFixtureJson } from "./fixtures.ts";

const refuse = (status: number, body: unknown = "", headers: Refusal["headers"] = {}): Failure =>
  toFailure({ status, headers, body: typeof body === "string" ? body : JSON.stringify(body) });

const error = (type: string, message = "", details?: object): object => ({
  type: "error",
  error: { type, message, details },
});

const INVALID = "invalid_request_error";

describe("the refusal of fixture", () => {
  it.each(["11", "12", "13"])("%s becomes the failure that the caller gets", (number) => {
    const { upstream_status, upstream_headers } = readFixtureJson(number, "meta.json") as {
      upstream_status: number;
      upstream_headers: Record<string, string>;
    };
    const failure = refuse(upstream_status, readFixture(number, "upstream-response.json"), upstream_headers);
    const expected = readFixtureJson(number, "expected-openai.json")["error"] as {
      message: string;
      param: string | null;
      code: string;
    };
    const codes = { upstream_rate_limited: "rate_limit_exceeded", upstream_unavailable: "upstream_unavailable" };
    expect(failure.message).toBe(expected.message);
    expect(failure.param ?? null).toBe(expected.param);
    expect(failure.detail ?? codes[failure.code as keyof typeof codes]).toBe(expected.code);
    expect(failure.upstreamStatus).toBe(upstream_status);
  });
});

describe("a refusal", () => {
  it.each<[string, Failure, Partial<Failure>]>([
    [
      "of the request",
      refuse(400, error(INVALID, "messages.0: bad")),
      { code: "upstream_rejected", transient: false, message: "messages.0: bad" },
    ],
    [
      "without words",
      refuse(422),
      { code: "upstream_rejected", message: "The upstream provider rejected the request." },
    ],
    ["of a media type", refuse(415), { code: "upstream_rejected" }],
    [
      "of a context that is too long for its answer",
      refuse(400, error(INVALID, "input length and `max_tokens` exceed context limit: 1")),
      { code: "upstream_rejected", detail: "context_length_exceeded", param: "messages" },
    ],
    [
      "of a context that is too long, in words that are also about money",
      refuse(400, error(INVALID, "prompt is too long for your credit")),
      {
        detail: "context_length_exceeded",
        message: "The conversation is longer than the model's context window.",
      },
    ],
    [
      "trap 28: of an account without funds, which is a 400",
      refuse(400, error(INVALID, "Your credit balance is too low to access the Anthropic API.")),
      { code: "upstream_refused_us", transient: false },
    ],
    [
      "of an account at its own limit, which is a 400",
      refuse(400, error(INVALID, "You have reached your specified API usage limits.")),
      { code: "upstream_refused_us" },
    ],
    [
      "of an organisation on hold, which is a 400",
      refuse(400, error(INVALID, "x", { error_code: "organization_on_hold" })),
      { code: "upstream_refused_us" },
    ],
    [
      "of what we made of the request",
      refuse(400, error(INVALID, "foo: Extra inputs are not permitted")),
      { code: "upstream_protocol", transient: false },
    ],
    [
      "of our key",
      refuse(401, error("authentication_error", "invalid x-api-key")),
      { code: "upstream_refused_us", transient: false },
    ],
    ["of our account", refuse(402, error("billing_error")), { code: "upstream_refused_us" }],
    ["of our permission", refuse(403, error("permission_error")), { code: "upstream_refused_us" }],
    ["of an unknown model", refuse(404, error("not_found_error", "model: x")), { code: "upstream_refused_us" }],
    [
      "trap 29: of a body that is too large, as HTML",
      refuse(413, "<html>413</html>"),
      { code: "upstream_rejected", message: "The request is too large for the upstream provider." },
    ],
    [
      "of our rate",
      refuse(429, error("rate_limit_error")),
      { code: "upstream_rate_limited", transient: true, retryAfterMs: undefined },
    ],
    [
      "of our rate while it ramps up",
      refuse(429, error("rate_limit_error", "", { error_code: "ramp_limit_exceeded" }), { "retry-after": "3" }),
      { code: "upstream_rate_limited", retryAfterMs: 3000 },
    ],
    [
      "trap 26: of our spending, for long",
      refuse(429, error("rate_limit_error", "", { error_code: "enforced_spend_limit_reached" })),
      { code: "upstream_unavailable", transient: false, retryAfterMs: 30_000 },
    ],
    [
      "trap 26: of our contract, for long",
      refuse(429, error("rate_limit_error", "", { error_code: "contract_spend_limit_reached" })),
      { code: "upstream_unavailable", transient: false },
    ],
    ["for lack of time", refuse(408), { code: "upstream_unavailable", transient: true }],
    ["for a conflict", refuse(409, error("conflict_error")), { code: "upstream_unavailable" }],
    ["because we left", refuse(499), { code: "upstream_unavailable" }],
    ["for an internal error", refuse(500, error("api_error")), { code: "upstream_unavailable", transient: true }],
    [
      "for an internal error that will stay",
      refuse(500, error("api_error"), { "x-should-retry": "false" }),
      { code: "upstream_unavailable", transient: false },
    ],
    ["by a proxy", refuse(502, "<html>"), { code: "upstream_unavailable", retryAfterMs: undefined }],
    [
      "for maintenance, until then",
      refuse(503, "", { "retry-after": "90" }),
      { code: "upstream_unavailable", retryAfterMs: 90_000 },
    ],
    ["for a timeout", refuse(504, error("timeout_error")), { code: "upstream_timeout", transient: true }],
    ["by a content network", refuse(522), { code: "upstream_unavailable" }],
    [
      "trap 27: for overload",
      refuse(529),
      { code: "upstream_unavailable", detail: "upstream_overloaded", transient: true },
    ],
    ["for overload, with another status", refuse(500, error("overloaded_error")), { detail: "upstream_overloaded" }],
    ["by a redirect", refuse(302, ""), { code: "upstream_protocol", transient: false }],
    ["with a status of no meaning", refuse(418, error("api_error")), { code: "upstream_protocol", transient: false }],
  ])("%s", (_, failure, expected) => {
    expect(failure).toMatchObject(expected);
    expect(failure.upstreamStatus).toBeGreaterThan(300);
    expect(failure.message).not.toMatch(/quota|billing|credit/i);
  });

  it.each([
    "",
    "null",
    "[]",
    "[1]",
    "3",
    '"text"',
    "{}",
    '{"error":null}',
    '{"error":[{}]}',
    '{"error":{"message":{}}}',
    "<html>",
    '{"error',
  ])("with the body %j is still classified by its status", (body) => {
    expect(refuse(503, body)).toMatchObject({ code: "upstream_unavailable" });
    expect(refuse(400, body)).toMatchObject({ message: "The upstream provider rejected the request." });
  });

  it.each<[string, Refusal["headers"], number | undefined]>([
    ["milliseconds before seconds", { "retry-after-ms": "1500", "retry-after": "9" }, 1500],
    ["fractions of a second", { "retry-after": "0.25" }, 250],
    ["the first of several", { "retry-after": ["2", "3"] }, 2000],
    [
      "a date, by the clock of the answer",
      { "retry-after": "Fri, 20 Nov 2026 10:00:05 GMT", date: "Fri, 20 Nov 2026 10:00:00 GMT" },
      5000,
    ],
    [
      "a date that has passed",
      { "retry-after": "Fri, 20 Nov 2026 10:00:00 GMT", date: "Fri, 20 Nov 2026 10:00:05 GMT" },
      0,
    ],
    ["a date without a clock", { "retry-after": "Fri, 20 Nov 2026 10:00:05 GMT" }, undefined],
    ["words", { "retry-after": "soon" }, undefined],
    ["a negative number", { "retry-after": "-1" }, undefined],
  ])("asks to wait as long as it says: %s", (_, headers, retryAfterMs) => {
    expect(refuse(429, "", headers).retryAfterMs).toBe(retryAfterMs);
  });

  it.each([
    ["key sk-ant-api03-AbC123-xyz is bad", "key [key] is bad"],
    ["see https://console.example.com/a?b=1 for more", "see [address] for more"],
    ["ask ann.lee@example.com", "ask [e-mail]"],
    ["organization org_01ABCdef and wrkspc_9xyz1", "organization [account] and [account]"],
    ["id 123e4567-e89b-12d3-a456-426614174000.", "id [key]."],
    ["two\n\tlines\u0000here", "two lines here"],
    ["messages.0.content: Field required", "messages.0.content: Field required"],
    [
      "`tool_use` ids were found without `tool_result` blocks: project-wide",
      "`tool_use` ids were found without `tool_result` blocks: project-wide",
    ],
    ["your billing is broken", "The upstream provider rejected the request."],
  ])("passes %j on as %j", (message, shown) => {
    expect(refuse(400, error(INVALID, message)).message).toBe(shown);
  });
});

describe("an error in an answer", () => {
  it.each<[string, Partial<Failure>]>([
    [INVALID, { code: "upstream_rejected", message: "bad" }],
    ["authentication_error", { code: "upstream_refused_us" }],
    ["billing_error", { code: "upstream_refused_us" }],
    ["permission_error", { code: "upstream_refused_us" }],
    ["not_found_error", { code: "upstream_refused_us" }],
    ["conflict_error", { code: "upstream_unavailable" }],
    ["request_too_large", { code: "upstream_rejected" }],
    ["rate_limit_error", { code: "upstream_rate_limited" }],
    ["api_error", { code: "upstream_unavailable" }],
    ["timeout_error", { code: "upstream_timeout" }],
    ["overloaded_error", { code: "upstream_unavailable", detail: "upstream_overloaded" }],
    ["novelty", { code: "upstream_unavailable" }],
  ])("of type %s is classified by it, and says only that generating failed after content", (type, expected) => {
    const event = error(type, "bad") as Record<string, unknown>;
    expect(toInBandFailure(event, { begun: false })).toMatchObject({ ...expected, upstreamStatus: 200 });
    const late = toInBandFailure(event, { begun: true });
    expect(late).toMatchObject({
      code: expected.code,
      message: "The upstream provider failed while generating the response.",
    });
  });
});
