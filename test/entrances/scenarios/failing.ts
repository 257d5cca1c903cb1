import type { FailureCode } from "../../../src/core/failure.ts";
import { begins, hangsUp, refuses, resets, says, sends, staysSilent } from "../../support/scripted-upstream.ts";
import type { ModelName, Scenario } from "./scenario.ts";

const hello = says("Hello.");
const impatient = { timeouts: { first_content_ms: 60, idle_ms: 60 } };

interface Refusal {
  readonly failure: FailureCode;
  readonly detail?: string;
  /** Once more after a failure that can pass by itself. */
  readonly calls: 1 | 2;
}

const ours: Refusal = { failure: "upstream_refused_us", calls: 1 };
const rejected: Refusal = { failure: "upstream_rejected", calls: 1 };
const unavailable: Refusal = { failure: "upstream_unavailable", calls: 2 };
const overloaded: Refusal = { ...unavailable, detail: "upstream_overloaded" };

/** What the statuses of each provider mean, where they do not mean the same everywhere. */
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
    name: `says ${failure} when ${model} answers with ${status}`,
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

/** One upstream model and nothing to fall back to. */
export const FAILING: readonly Scenario[] = [
  ...REFUSALS.flatMap(([status, meaning, exceptions = {}]) =>
    DIALECTS.map((model) => refusalOf(model, status, exceptions[model] ?? meaning)),
  ),
  {
    name: "passes on that a prompt is longer than the context window",
    upstream: { alpha: [refuses(400, "prompt is too long: 201000 tokens > 200000 maximum")] },
    expected: {
      failure: "upstream_rejected",
      detail: "context_length_exceeded",
      param: "messages",
      attempts: ["alpha upstream_rejected 400"],
    },
  },
  {
    name: "passes on how long a provider wants to be left alone",
    upstream: { alpha: [refuses(429, "Slow down.", { "retry-after": "17" })] },
    expected: {
      failure: "upstream_rate_limited",
      retryAfterS: 17,
      attempts: ["alpha upstream_rate_limited 429"],
      breaker: "open",
    },
  },
  {
    name: "asks callers to wait a minute at most",
    upstream: { alpha: [refuses(503, "Come back tomorrow.", { "retry-after": "86400" })] },
    expected: { failure: "upstream_unavailable", retryAfterS: 60, attempts: ["alpha upstream_unavailable 503"] },
  },
  {
    name: "says so when nobody listens at a provider's address",
    ask: { model: "gone" },
    expected: { failure: "upstream_unavailable", attempts: ["gone upstream_unavailable", "gone upstream_unavailable"] },
  },
  ...(
    [
      ["closes", hangsUp],
      ["resets", resets],
    ] as const
  ).map(([what, act]): Scenario => ({
    name: `says so when a provider ${what} the connection in place of an answer`,
    upstream: { alpha: [act] },
    expected: {
      failure: "upstream_unavailable",
      attempts: ["alpha upstream_unavailable", "alpha upstream_unavailable"],
    },
  })),
  {
    name: "gives up on a provider that stays silent, and closes the connection to it",
    upstream: { alpha: [staysSilent] },
    models: { alpha: impatient },
    expected: { failure: "upstream_timeout", attempts: ["alpha upstream_timeout"] },
  },
  {
    name: "gives up when everything together takes longer than the gateway allows",
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
    name: `says so when a provider answers with ${what}`,
    mode: "whole",
    upstream: { alpha: [act] },
    expected: { failure: "upstream_protocol", attempts: twice("alpha upstream_protocol 200") },
  })),
  ...(["alpha", "beta", "local"] as const).map((model): Scenario => ({
    name: `takes a whole answer of ${model} without a reason for its end for a failure`,
    ask: { model },
    mode: "whole",
    upstream: { [model]: [begins("Hello.", "end")] },
    expected: { failure: "upstream_protocol", attempts: twice(`${model} upstream_protocol 200`) },
  })),
  ...(
    [
      ["alpha", "alpha upstream_unavailable 200"],
      // Errors on the Gemini wire bring a status of their own.
      ["beta", "beta upstream_unavailable 200"],
      ["local", "local upstream_unavailable 200"],
    ] as const
  ).map(([model, attempt]): Scenario => ({
    name: `takes an error that ${model} sends with a success' status for the error that it is`,
    ask: { model },
    upstream: { [model]: [begins("", "error")] },
    expected: {
      failure: "upstream_unavailable",
      detail: "upstream_overloaded",
      attempts: [attempt, attempt],
    },
  })),
  {
    name: "says so when a provider closes the connection in the middle of a whole answer",
    mode: "whole",
    upstream: { alpha: [begins("Hello.", "close")] },
    expected: { failure: "upstream_protocol", attempts: twice("alpha upstream_protocol 200") },
  },
  {
    name: "says so when a provider goes silent in the middle of a whole answer",
    mode: "whole",
    upstream: { alpha: [begins("Hello.", "silence")] },
    models: { alpha: { timeouts: { idle_ms: 60 } } },
    expected: { failure: "upstream_timeout", attempts: ["alpha upstream_timeout 200"] },
  },
  {
    name: "is served by the primary's second attempt when the first failure has passed",
    ask: { fallbackModels: ["beta"] },
    upstream: { alpha: [refuses(503), hello] },
    expected: { answer: {}, attempts: ["alpha upstream_unavailable 503", "alpha served 200"] },
  },
  {
    name: "does not try again when the provider says that it is pointless",
    upstream: { alpha: [refuses(503, "No.", { "x-should-retry": "false" }), hello] },
    expected: { failure: "upstream_unavailable", attempts: ["alpha upstream_unavailable 503"] },
  },
  {
    name: "tries again at once when the provider asks for no patience",
    upstream: { alpha: [refuses(503, "A moment.", { "retry-after": "0" }), hello] },
    expected: { answer: {}, attempts: ["alpha upstream_unavailable 503", "alpha served 200"] },
  },
];
