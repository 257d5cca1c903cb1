import { describe, expect, it } from "vitest";
import type { Failure, FailureCode, FailureDetail } from "../../../src/core/failure.ts";
import {
  toInBandFailure as toErrorFailure,
  toFailure as toRefusalFailure,
} from "../../../src/providers/anthropic/failure.ts";
import type { Refusal } from "../../../src/providers/wire/response.ts";
import { toFailure, toInBandFailure as toGeminiInner } from "../../../src/providers/gemini/failure.ts";
import {
  toInBandFailure as toOpenAiInner,
  toFailure as toOpenAiFailure,
} from "../../../src/providers/wire/openai-failure.ts";

/** How a dialect words an error, and what it reads out of one. */
interface Dialect {
  readonly refuse: (refusal: Refusal) => Failure;
  /** An error inside an answer: the dialect's own for this status. */
  readonly inside: (status: number, message: string, where: { readonly begun: boolean }) => Failure;
  readonly toBody: (message: string) => object;
}

const ANTHROPIC_TYPES: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  429: "rate_limit_error",
  500: "api_error",
  504: "timeout_error",
  529: "overloaded_error",
};

const DIALECTS: Readonly<Record<string, Dialect>> = {
  anthropic: {
    refuse: toRefusalFailure,
    inside: (status, message, where) =>
      toErrorFailure({ type: "error", error: { type: ANTHROPIC_TYPES[status], message } }, where),
    toBody: (message) => ({ type: "error", error: { type: "some_error", message } }),
  },
  gemini: {
    refuse: toFailure,
    inside: (status, message, where) => toGeminiInner({ error: { code: status, message } }, where),
    toBody: (message) => ({ error: { message, details: [] } }),
  },
  openai: {
    refuse: toOpenAiFailure,
    inside: (status, message, where) => toOpenAiInner({ code: status, message }, where),
    toBody: (message) => ({ error: { message } }),
  },
};

const REJECTED = "The upstream provider rejected the request.";
const FAILED = "The upstream provider failed.";
const OVERLOADED = "The upstream provider is temporarily overloaded.";
const UNEXPECTED = "The upstream provider answered with an unexpected status.";
const GENERATING = "The upstream provider failed while generating the response.";

type Row = [status: number, code: FailureCode, transient: boolean, message: string, detail?: FailureDetail | undefined];

const STATUSES: Row[] = [
  [302, "upstream_protocol", false, UNEXPECTED],
  [304, "upstream_protocol", false, UNEXPECTED],
  [400, "upstream_rejected", false, REJECTED],
  [401, "upstream_refused_us", false, "The gateway could not authenticate with the upstream provider."],
  [402, "upstream_refused_us", false, "The upstream provider does not serve this gateway's account."],
  [403, "upstream_refused_us", false, "The upstream provider does not let this gateway's account do this."],
  [404, "upstream_refused_us", false, "The upstream provider does not know the model."],
  [405, "upstream_protocol", false, UNEXPECTED],
  [408, "upstream_unavailable", true, FAILED],
  [409, "upstream_unavailable", true, FAILED],
  [410, "upstream_protocol", false, UNEXPECTED],
  [413, "upstream_rejected", false, "The request is too large for the upstream provider."],
  [415, "upstream_rejected", false, REJECTED],
  [418, "upstream_protocol", false, UNEXPECTED],
  [422, "upstream_rejected", false, REJECTED],
  [429, "upstream_rate_limited", true, "The upstream provider is rate limiting requests."],
  [451, "upstream_protocol", false, UNEXPECTED],
  [499, "upstream_unavailable", true, FAILED],
  ...[500, 501, 502, 503, 505, 507, 511, 520, 522, 524, 530, 598, 599].map((status): Row => [
    status,
    "upstream_unavailable",
    true,
    FAILED,
  ]),
  [504, "upstream_timeout", true, "The upstream provider took too long to answer."],
  [529, "upstream_unavailable", true, OVERLOADED, "upstream_overloaded"],
  [600, "upstream_protocol", false, UNEXPECTED],
];

describe.each(Object.entries(DIALECTS))("a refusal in the %s dialect", (_, { refuse, inside, toBody }) => {
  const fail = (status: number, message = "", headers: Refusal["headers"] = {}): Failure =>
    refuse({ status, headers, body: JSON.stringify(toBody(message)) });

  it.each<Row>(STATUSES)("with status %i is %s, transient %s: %s", (status, code, transient, message, detail) => {
    const expected = { code, transient, message, detail, requestBound: false, upstreamStatus: status };
    expect(fail(status)).toMatchObject(expected);
    expect(refuse({ status, headers: {}, body: "<html>" })).toMatchObject(expected);
  });

  it("costs nothing, unless the upstream's time ran out: then it may have generated", () => {
    const billed = STATUSES.map(([status]) => status).filter((status) => !fail(status).refused);
    expect(billed.toSorted((a, b) => a - b)).toEqual([408, 504, 524]);
    expect(inside(504, "", { begun: false }).refused).toBe(false);
    expect(inside(500, "", { begun: false }).refused).toBe(true);
    const blocked = "Output blocked by content filtering policy";
    expect([fail(400, blocked).refused, inside(400, blocked, { begun: false }).refused]).toEqual([false, false]);
  });

  it.each([400, 413, 415, 422])("with status %i says what is wrong, unless that is about money", (status) => {
    expect(fail(status, "bad picture").message).toBe("bad picture");
    expect(fail(status, "Your billing account is closed.").message).toMatch(/^The (?:upstream|request)/);
  });

  it.each([429, 503, 504, 529])("with status %i keeps how long to wait, and whether to try again", (status) => {
    expect(fail(status, "", { "retry-after": "7" })).toMatchObject({ retryAfterMs: 7000, transient: true });
    const final = fail(status, "", { "retry-after": "7", "x-should-retry": "false" });
    expect(final).toMatchObject({ retryAfterMs: 7000, transient: false });
    expect(fail(status, "", { "x-should-retry": ["true"] }).transient).toBe(true);
  });

  it.each([
    ["0", "Retry after 1 second."],
    ["1", "Retry after 1 second."],
    ["1.2", "Retry after 2 seconds."],
    ["46", "Retry after 46 seconds."],
    ["999999999", "Retry after 86400 seconds."],
    ["Fri, 31 Dec 9999 23:59:59 GMT", "Retry after 86400 seconds."],
  ])("of our rate, with retry-after: %s, ends: %s", (wait, advice) => {
    const { message } = fail(429, "", { "retry-after": wait, date: "Mon, 30 Nov 2026 00:00:00 GMT" });
    expect(message).toBe(`The upstream provider is rate limiting requests. ${advice}`);
  });

  it.each([
    `property "prompt is too long, exceed context limit" is bad`,
    "value 'the input token count is 5 and exceeds all; maximum context length' is bad",
    "`Extra inputs are not permitted; unknown field; Unknown name` is bad",
    `it says "my \\"invalid api key\\" and credit" here`,
    "“reduce the length of; prompt is too long” is bad",
    `cut in the middle of "invalid api key, prompt is too long`,
  ])("is not classified by what it quotes: %s", (message) => {
    expect(fail(400, message)).toMatchObject({ code: "upstream_rejected", detail: undefined, requestBound: false });
  });

  it("is classified by the beginning of its text, however long that is", () => {
    const hostile = ["input token count ", "context size ", "'a ", '"\\', "property ", "a@", "org_", "a-", "/", ":"];
    for (const word of hostile) {
      const message = word.repeat(Math.ceil((1 << 20) / word.length));
      const failure = fail(400, message);
      expect(failure.message.length).toBeLessThanOrEqual(502);
    }
    const late = `${"word ".repeat(1000)}prompt is too long; input token count exceeds; maximum context length`;
    expect(fail(400, late).detail).toBeUndefined();
  });
});

describe.each(Object.entries(DIALECTS))("an error inside an answer in the %s dialect", (_, { inside }) => {
  it.each<Row>(STATUSES.filter(([status]) => status in ANTHROPIC_TYPES))(
    "for status %i is %s, as a refusal is, until content was given",
    (status, code, transient, message, detail) => {
      const same = { code, transient, detail, upstreamStatus: 200 };
      expect(inside(status, "", { begun: false })).toMatchObject({ ...same, message });
      const late = inside(status, "their own words", { begun: true });
      expect(late).toMatchObject({ ...same, message: GENERATING });
      expect(JSON.stringify(late.violations)).not.toContain("words");
    },
  );

  it("is classified by the beginning of its text, in the middle of an answer of a megabyte", () => {
    const failure = inside(400, "input token count ".repeat(60_000), { begun: false });
    expect(failure).toMatchObject({ code: "upstream_rejected", detail: undefined });
    expect(failure.message.length).toBeLessThanOrEqual(502);
  });
});

describe("a bad request that is not the caller's doing", () => {
  const refusal = (error: object): Refusal => ({ status: 400, headers: {}, body: JSON.stringify({ error }) });
  const anthropic = (message: string, details?: object): Failure => toRefusalFailure(refusal({ message, details }));
  const gemini = (message: string, error: object = {}): Failure => toFailure(refusal({ message, ...error }));
  const openai = (message: string, code?: string): Failure => toOpenAiFailure(refusal({ message, code }));
  const badKey = { details: [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "API_KEY_INVALID" }] };

  it.each<[string, Failure, FailureCode]>([
    ["anthropic, of an account", anthropic("Your credit balance is too low."), "upstream_refused_us"],
    ["anthropic, of a field", anthropic("foo: Extra inputs are not permitted"), "upstream_protocol"],
    ["gemini, of a field", gemini('Unknown name "foo": Cannot find field.'), "upstream_protocol"],
    ["openai, of a key", openai("Incorrect API key provided."), "upstream_refused_us"],
    ["openai, of a field", openai("property 'foo' is unsupported"), "upstream_protocol"],
  ])("says nothing about the upstream's health when only its words say so: %s", (_, failure, code) => {
    expect(failure).toMatchObject({ code, requestBound: true, transient: false });
  });

  it.each<[string, Failure, FailureCode]>([
    ["anthropic", anthropic("x", { error_code: "organization_on_hold" }), "upstream_refused_us"],
    ["gemini", gemini("API key not valid.", badKey), "upstream_refused_us"],
    ["openai", openai("x", "invalid_api_key"), "upstream_refused_us"],
  ])("counts when a structured field says so: %s", (_, failure, code) => {
    expect(failure).toMatchObject({ code, requestBound: false });
  });

  it.each<[string, typeof toFailure, string]>([
    ["anthropic", toRefusalFailure, "tools.0.web_search_20250305.speed: Extra inputs are not permitted"],
    ["gemini", toFailure, "Unknown name \"speed\" at 'tools[0]': Cannot find field."],
    [
      "openai",
      (refused, redact, asked) => toOpenAiFailure(refused, { redact }, asked),
      "property 'speed' is unsupported",
    ],
  ])("is the caller's doing when the body holds JSON of the caller's: %s", (_, toRefused, message) => {
    expect(toRefused(refusal({ message }), undefined, { verbatim: true })).toMatchObject({
      code: "upstream_rejected",
      message: expect.stringContaining("speed") as string,
    });
  });

  it("is classified by its structured field, whatever its words are", () => {
    expect(openai("prompt is too long", "invalid_api_key").detail).toBeUndefined();
    expect(gemini("input token count exceeds", badKey).detail).toBeUndefined();
  });
});
