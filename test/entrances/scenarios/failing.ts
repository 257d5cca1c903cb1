import type { FailureCode, FailureDetail } from "../../../src/core/failure.ts";
import { begins, hangsUp, refuses, resets, says, sends, staysSilent } from "../../support/scripted-upstream.ts";
import type { ModelName, Scenario } from "./scenario.ts";

const hello = says("Hello.");
const shortTimeouts = { timeouts: { first_content_ms: 60, idle_ms: 60 } };

interface Refusal {
  readonly failure: FailureCode;
  readonly detail?: FailureDetail;
  /** One more attempt after a temporary failure. */
  readonly calls: 1 | 2;
}

const ours: Refusal = { failure: "upstream_refused_us", calls: 1 };
const rejected: Refusal = { failure: "upstream_rejected", calls: 1 };
const unavailable: Refusal = { failure: "upstream_unavailable", calls: 2 };
const overloaded: Refusal = { ...unavailable, detail: "upstream_overloaded" };

/** Failure codes by status, where they differ between providers. */
const REFUSALS: readonly (readonly [
  status: number,
  meaning: Refusal,
  exceptions?: Partial<Record<ModelName, Refusal>>,
])[] = [
  [400, rejected],
  [401, ours],
  [402, ours],
  [403, ours],
  [404, ours],
  [408, unavailable],
  [413, rejected],
  [422, rejected],
  [429, { failure: "upstream_rate_limited", calls: 2 }],
  [500, unavailable],
  [502, unavailable],
  [503, unavailable, { beta: overloaded }],
  [504, { failure: "upstream_timeout", calls: 2 }],
  [529, overloaded],
];

const DIALECTS = ["alpha", "beta", "local"] as const;

function refusalOf(model: ModelName, status: number, { failure, detail, calls }: Refusal): Scenario {
  const attempt = `${model} ${failure} ${status}`;
  return {
    name: `returns ${failure} when ${model} responds with ${status}`,
    isRepeat: model !== "alpha",
    ask: { model },
    upstream: { [model]: [refuses(status)] },
    expected: {
      failure,
      attempts: Array.from({ length: calls }, () => attempt),
      ...(detail !== undefined && { detail }),
    },
  };
}

const twice = (attempt: string): readonly string[] => [attempt, attempt];

/** One upstream model without fallbacks. */
export const FAILING: readonly Scenario[] = [
  ...REFUSALS.flatMap(([status, meaning, exceptions = {}]) =>
    DIALECTS.map((model) => refusalOf(model, status, exceptions[model] ?? meaning)),
  ),
  {
    name: "returns context_length_exceeded for a prompt beyond the context window",
    upstream: { alpha: [refuses(400, "prompt is too long: 201000 tokens > 200000 maximum")] },
    expected: {
      failure: "upstream_rejected",
      detail: "context_length_exceeded",
      param: "messages",
      attempts: ["alpha upstream_rejected 400"],
    },
  },
  {
    name: "returns the provider's retry-after",
    upstream: { alpha: [refuses(429, "Slow down.", { "retry-after": "17" })] },
    expected: {
      failure: "upstream_rate_limited",
      retryAfterS: 17,
      attempts: ["alpha upstream_rate_limited 429"],
      breaker: "open",
    },
  },
  {
    name: "returns a retry-after of at most a minute",
    upstream: { alpha: [refuses(503, "Come back tomorrow.", { "retry-after": "86400" })] },
    expected: { failure: "upstream_unavailable", retryAfterS: 60, attempts: ["alpha upstream_unavailable 503"] },
  },
  {
    name: "returns a failure when a provider's port is closed",
    ask: { model: "gone" },
    expected: { failure: "upstream_unavailable", attempts: ["gone upstream_unavailable", "gone upstream_unavailable"] },
  },
  ...(
    [
      ["closes", hangsUp],
      ["resets", resets],
    ] as const
  ).map(([what, act]): Scenario => ({
    name: `returns a failure when a provider ${what} the connection before a response`,
    upstream: { alpha: [act] },
    expected: {
      failure: "upstream_unavailable",
      attempts: ["alpha upstream_unavailable", "alpha upstream_unavailable"],
    },
  })),
  {
    name: "times out on a silent provider, and closes the connection",
    upstream: { alpha: [staysSilent] },
    models: { alpha: shortTimeouts },
    expected: { failure: "upstream_timeout", attempts: ["alpha upstream_timeout"] },
  },
  {
    name: "times out when all attempts together exceed the total timeout",
    ask: { fallbackModels: ["beta"] },
    upstream: { alpha: [staysSilent], beta: [hello] },
    models: { alpha: { timeouts: { total_ms: 60 } } },
    expected: {
      failure: "upstream_timeout",
      message: /longer than this gateway allows/,
      attempts: ["alpha upstream_timeout"],
    },
  },
  ...(
    [
      ["a web page", sends(200, "text/html", "<html>Welcome</html>")],
      ["an empty object", sends(200, "application/json", "{}")],
      ["half of its JSON", begins("Hello.", "garbage")],
    ] as const
  ).map(([what, act]): Scenario => ({
    name: `returns a failure when a provider responds with ${what}`,
    mode: "whole",
    upstream: { alpha: [act] },
    expected: { failure: "upstream_protocol", attempts: twice("alpha upstream_protocol 200") },
  })),
  ...(["alpha", "beta", "local"] as const).map((model): Scenario => ({
    name: `treats a whole answer of ${model} without a finish reason as a failure`,
    isRepeat: model !== "alpha",
    ask: { model },
    mode: "whole",
    upstream: { [model]: [begins("Hello.", "end")] },
    expected: { failure: "upstream_protocol", attempts: twice(`${model} upstream_protocol 200`) },
  })),
  ...(
    [
      ["alpha", "alpha upstream_unavailable 200"],
      // Errors in the Gemini format contain a status of their own.
      ["beta", "beta upstream_unavailable 200"],
      ["local", "local upstream_unavailable 200"],
    ] as const
  ).map(([model, attempt]): Scenario => ({
    name: `treats an error that ${model} sends with a success status as an error`,
    isRepeat: model !== "alpha",
    ask: { model },
    upstream: { [model]: [begins("", "error")] },
    expected: {
      failure: "upstream_unavailable",
      detail: "upstream_overloaded",
      attempts: [attempt, attempt],
    },
  })),
  {
    name: "returns a failure when a provider closes the connection within a whole answer",
    mode: "whole",
    upstream: { alpha: [begins("Hello.", "close")] },
    expected: { failure: "upstream_protocol", attempts: twice("alpha upstream_protocol 200") },
  },
  {
    name: "returns a failure when a provider stops sending within a whole answer",
    mode: "whole",
    upstream: { alpha: [begins("Hello.", "silence")] },
    models: { alpha: { timeouts: { idle_ms: 60 } } },
    expected: { failure: "upstream_timeout", attempts: ["alpha upstream_timeout 200"] },
  },
  {
    name: "is served by the primary's second attempt after a temporary failure",
    ask: { fallbackModels: ["beta"] },
    upstream: { alpha: [refuses(503), hello] },
    expected: { answer: {}, attempts: ["alpha upstream_unavailable 503", "alpha served 200"] },
  },
  {
    name: "does not retry when the provider says not to",
    upstream: { alpha: [refuses(503, "No.", { "x-should-retry": "false" }), hello] },
    expected: { failure: "upstream_unavailable", attempts: ["alpha upstream_unavailable 503"] },
  },
  {
    name: "retries at once after a retry-after of 0",
    upstream: { alpha: [refuses(503, "A moment.", { "retry-after": "0" }), hello] },
    expected: { answer: {}, attempts: ["alpha upstream_unavailable 503", "alpha served 200"] },
  },
];
