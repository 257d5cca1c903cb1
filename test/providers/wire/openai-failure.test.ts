import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Failure } from "../../../src/core/failure.ts";
import { toInBandFailure, toFailure } from "../../../src/providers/wire/openai-failure.ts";
import { toUsage } from "../../../src/providers/wire/token-usage.ts";
import { readFixture } from "../openai/fixture.ts";

const fail = (status: number, body: unknown = "", headers: Record<string, string> = {}): Failure =>
  toFailure({ status, headers, body: typeof body === "string" ? body : JSON.stringify(body) });
const error = (fields: object) => ({ error: fields });

describe("a refusal is named", () => {
  it.each<[string, number, unknown, object]>([
    [
      "a bad request",
      400,
      error({ message: "bad image", param: "messages[0].content" }),
      { code: "upstream_rejected", message: "bad image", param: "messages[0].content", transient: false },
    ],
    [
      "a bad request without a body",
      400,
      "",
      { code: "upstream_rejected", message: "The upstream provider rejected the request.", param: undefined },
    ],
    ["an error that says nothing", 400, error({}), { code: "upstream_rejected" }],
    ["an error that is text", 400, { error: "bad image" }, { message: "bad image" }],
    [
      "an error without a wrapper",
      422,
      { object: "error", message: "bad image" },
      { code: "upstream_rejected", message: "bad image" },
    ],
    [
      "a list of details",
      422,
      { detail: [{ loc: ["body"], msg: "bad image", type: "value_error" }] },
      { code: "upstream_rejected", message: "bad image" },
    ],
    ["trap 23: an error in an array", 400, [error({ message: "bad image" })], { message: "bad image" }],
    [
      "trap 29: a proxy's page",
      413,
      "<html><body>413</body></html>",
      { code: "upstream_rejected", message: "The request is too large for the upstream provider." },
    ],
    ["an unsupported type", 415, error({ message: "no" }), { code: "upstream_rejected" }],
    [
      "a long conversation by its code",
      400,
      error({ code: "context_length_exceeded", message: "too long" }),
      { code: "upstream_rejected", detail: "context_length_exceeded", param: "messages", transient: false },
    ],
    [
      "a long conversation in words",
      400,
      error({ message: "This model's maximum context length is 8192 tokens." }),
      { detail: "context_length_exceeded", param: "messages" },
    ],
    [
      "a long conversation for a local model",
      400,
      error({ type: "exceed_context_size_error", message: "the request exceeds the available context size" }),
      { detail: "context_length_exceeded" },
    ],
    [
      "too large a token limit, which is no long conversation",
      400,
      error({ message: "max_tokens is too large: 9", param: "max_tokens" }),
      { detail: undefined, param: "max_tokens" },
    ],
    [
      "a field that we should not have sent",
      400,
      error({ code: "unknown_parameter", message: "Unknown parameter: 'x'" }),
      { code: "upstream_protocol", transient: false },
    ],
    [
      "a field that a strict server forbids",
      422,
      { detail: [{ type: "extra_forbidden", msg: "Extra inputs are not permitted" }] },
      { code: "upstream_protocol", transient: false },
    ],
    [
      "trap 24: a bad key as a bad request",
      400,
      [error({ code: 400, message: "API key not valid. Please pass a valid API key.", status: "INVALID_ARGUMENT" })],
      { code: "upstream_refused_us" },
    ],
    [
      "trap 28: an empty account as a bad request",
      400,
      error({ type: "invalid_request_error", code: "billing_hard_limit_reached" }),
      { code: "upstream_refused_us" },
    ],
    [
      "a refused credential",
      401,
      error({ message: "Incorrect API key provided: sk-abc", code: "invalid_api_key" }),
      {
        code: "upstream_refused_us",
        message: "The gateway could not authenticate with the upstream provider.",
        transient: false,
      },
    ],
    ["an unpaid account", 402, error({ message: "pay" }), { code: "upstream_refused_us" }],
    ["a refused account", 403, "<html>", { code: "upstream_refused_us" }],
    [
      "refused content",
      403,
      error({ code: "content_policy_violation", message: "flagged" }),
      { code: "upstream_rejected", message: "flagged" },
    ],
    [
      "content that xAI refuses, and bills",
      403,
      { code: "permission-denied", error: "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO" },
      { code: "upstream_rejected", refused: false },
    ],
    [
      "what a model at Groq generated in vain",
      400,
      error({ type: "invalid_request_error", code: "json_validate_failed", failed_generation: '{"a":' }),
      { code: "upstream_rejected", refused: false },
    ],
    [
      "reasoning at OpenAI that used all tokens",
      400,
      error({
        type: "invalid_request_error",
        message:
          "Could not finish the message because max_tokens or model output limit was reached. Please try again with higher max_tokens.",
      }),
      { code: "upstream_rejected", refused: false },
    ],
    [
      "an answer at OpenAI that it cannot read",
      500,
      error({ type: "model_error", message: "The model produced invalid content. Consider modifying your prompt." }),
      { code: "upstream_unavailable", refused: false },
    ],
    [
      "a picture that OpenAI refuses after its model has asked for it",
      400,
      error({ type: "image_generation_user_error", code: "moderation_blocked", message: "unsafe" }),
      { code: "upstream_rejected", message: "unsafe", refused: false },
    ],
    [
      "an unknown model",
      404,
      error({ code: "model_not_found", message: "no model llama-x" }),
      { code: "upstream_refused_us", message: "The upstream provider does not know the model." },
    ],
    ["a slow request", 408, "", { code: "upstream_unavailable", transient: true }],
    ["a conflict", 409, "", { code: "upstream_unavailable" }],
    ["a closed request", 499, "", { code: "upstream_unavailable" }],
    [
      "a rate limit",
      429,
      error({ code: "rate_limit_exceeded", message: "slow down" }),
      {
        code: "upstream_rate_limited",
        message: "The upstream provider is rate limiting requests.",
        retryAfterMs: undefined,
        transient: true,
      },
    ],
    [
      "trap 26: a limit that lasts",
      429,
      error({ type: "insufficient_quota" }),
      { code: "upstream_unavailable", retryAfterMs: 30_000, transient: false },
    ],
    [
      "an error of the server",
      500,
      error({ message: "oops" }),
      { code: "upstream_unavailable", message: "The upstream provider failed.", transient: true },
    ],
    ["a missing method", 501, "", { code: "upstream_unavailable" }],
    ["a bad gateway", 502, "<html>", { code: "upstream_unavailable" }],
    ["an unavailable server", 503, "", { code: "upstream_unavailable", detail: undefined }],
    [
      "an overloaded server",
      503,
      error({ type: "overloaded_error" }),
      {
        code: "upstream_unavailable",
        detail: "upstream_overloaded",
        message: "The upstream provider is temporarily overloaded.",
      },
    ],
    ["a slow gateway", 504, "", { code: "upstream_timeout", transient: true }],
    ["a proxy's own status", 522, "", { code: "upstream_unavailable" }],
    ["trap 27: the status of overload", 529, "", { code: "upstream_unavailable", detail: "upstream_overloaded" }],
    ["a redirect", 307, "", { code: "upstream_protocol" }],
    ["a wrong method", 405, "", { code: "upstream_protocol" }],
    ["no content", 304, "", { code: "upstream_protocol" }],
  ])("%s (%i)", (_, status, body, expected) => {
    expect(fail(status, body)).toMatchObject({ ...expected, upstreamStatus: status });
  });

  it("trap 26: as fixture 43 says, in neutral words", () => {
    const failure = fail(
      429,
      readFixture("43-openai-error-insufficient-quota").bytes("upstream-response.json").toString(),
    );
    expect(failure).toMatchObject({
      code: "upstream_unavailable",
      message: "The upstream provider is not available.",
      retryAfterMs: 30_000,
      transient: false,
      upstreamStatus: 429,
    });
  });

  it("costs nothing, unless its host bills what it refuses for the content or the length of the prompt", () => {
    const refused = (body: string, billsRefusals: boolean): boolean =>
      toFailure({ status: 400, headers: {}, body }, { billsRefusals }).refused;
    const bodies = [{ code: "content_filter" }, { code: "context_length_exceeded" }, { code: "invalid_value" }].map(
      (facts) => JSON.stringify(error(facts)),
    );
    expect(bodies.map((body) => refused(body, true))).toEqual([false, false, true]);
    expect(bodies.map((body) => refused(body, false))).toEqual([true, true, true]);
  });

  it("trap 33: by a number in place of a code, without breaking", () => {
    expect(fail(429, error({ code: 429, type: 7, message: [] })).code).toBe("upstream_rate_limited");
  });

  it("whatever its body is", () => {
    const body = fc.oneof(
      fc.string(),
      fc.json(),
      fc.json().map((text) => `{"error":${text}}`),
    );
    fc.assert(
      fc.property(fc.integer({ min: 300, max: 599 }), body, (status, text) => {
        const failure = fail(status, text);
        expect(failure).toBeInstanceOf(Failure);
        expect(failure.upstreamStatus).toBe(status);
        expect(failure.message).not.toMatch(/quota|billing|credit/i);
      }),
    );
  });
});

describe("the wait that a refusal asks for", () => {
  const date = "Wed, 21 Oct 2026 07:28:00 GMT";
  it.each<[Record<string, string>, number | undefined]>([
    [{ "retry-after-ms": "250.5", "retry-after": "9" }, 251],
    [{ "retry-after": "7" }, 7000],
    [{ "retry-after": "0.5" }, 500],
    [{ "retry-after": "Wed, 21 Oct 2026 07:28:30 GMT", date }, 30_000],
    [{ "retry-after": "Wed, 21 Oct 2026 07:27:30 GMT", date }, 0],
    [{ "retry-after": "Wed, 21 Oct 2026 07:28:30 GMT" }, undefined],
    [{ "retry-after": "soon", date }, undefined],
    [{ "retry-after": "-3", date: "" }, undefined],
    [{}, undefined],
  ])("is read from %j as %s ms", (headers, retryAfterMs) => {
    expect(fail(429, "", headers).retryAfterMs).toBe(retryAfterMs);
    expect(fail(503, "", headers).retryAfterMs).toBe(retryAfterMs);
  });

  it("is said in whole seconds", () => {
    expect(fail(429, "", { "retry-after-ms": "45837" }).message).toBe(
      "The upstream provider is rate limiting requests. Retry after 46 seconds.",
    );
  });
});

describe("an error inside an answer", () => {
  it.each<[unknown, string]>([
    [{ type: "insufficient_quota" }, "upstream_unavailable"],
    [{ code: "rate_limit_exceeded" }, "upstream_rate_limited"],
    [{ status: "RESOURCE_EXHAUSTED" }, "upstream_rate_limited"],
    [{ type: "authentication_error" }, "upstream_refused_us"],
    [{ type: "permission_error" }, "upstream_refused_us"],
    [{ code: "model_not_found" }, "upstream_refused_us"],
    [{ type: "timeout" }, "upstream_timeout"],
    [{ code: "context_length_exceeded", message: "long" }, "upstream_rejected"],
    [{ code: "moderation_blocked", message: "unsafe" }, "upstream_rejected"],
    [{ code: 1302 }, "upstream_unavailable"],
    ["broken", "upstream_unavailable"],
    [null, "upstream_unavailable"],
  ])("%j is %s", (inner, code) => {
    expect(toInBandFailure(inner, { begun: false })).toMatchObject({ code, upstreamStatus: 200 });
    expect(toInBandFailure(inner, { begun: true })).toMatchObject({ code, upstreamStatus: 200 });
  });

  it("costs nothing, unless it is about the content, or tokens were counted", () => {
    const refused = (inner: object, inputTokens: number): boolean =>
      toInBandFailure(inner, { begun: false, usage: toUsage({ inputTokens, outputTokens: 0 }) }).refused;
    const inners = [{ code: "content_filter" }, { code: "cyber_policy" }, { code: "server_error" }];
    expect(inners.map((inner) => refused(inner, 0))).toEqual([false, false, true]);
    expect(inners.map((inner) => refused(inner, 7))).toEqual([false, false, false]);
    const generated = { code: "tool_use_failed", failed_generation: "f(" };
    const blocked = [
      generated,
      { type: "image_generation_user_error" },
      { message: "Content violates usage guidelines." },
    ];
    expect(blocked.map((inner) => refused(inner, 0))).toEqual([false, false, false]);
  });

  it("keeps what clients act on, whatever the words", () => {
    expect(toInBandFailure({ type: "overloaded_error" }, { begun: true }).detail).toBe("upstream_overloaded");
    expect(toInBandFailure({ code: "insufficient_quota" }, { begun: true })).toMatchObject({
      retryAfterMs: 30_000,
      transient: false,
    });
    expect(toInBandFailure({ code: "context_length_exceeded" }, { begun: true })).toMatchObject({
      detail: "context_length_exceeded",
      param: "messages",
    });
  });
});
