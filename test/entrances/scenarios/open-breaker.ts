import { refuses, says } from "../../support/scripted-upstream.ts";
import type { Scenario } from "./scenario.ts";

const hello = says("Hello.");
const fails = refuses(503);
/** Two requests make three failures in a row: the second one is not retried. */
const opened = { times: 2, breaker: "open" } as const;

/** Models whose circuit breaker opens. */
export const OPEN_BREAKER: readonly Scenario[] = [
  {
    name: "does not call a model while its breaker is open after three failures in a row, and returns a retry-after",
    upstream: { alpha: [fails] },
    before: opened,
    expected: { failure: "upstream_unavailable", retryAfterS: 1, attempts: ["alpha skipped"], breaker: "open" },
  },
  {
    name: "skips a primary with an open breaker and falls back",
    ask: { fallbackModels: ["beta"] },
    upstream: { alpha: [fails], beta: [hello] },
    before: opened,
    expected: { answer: { model: "beta" }, attempts: ["alpha skipped", "beta served 200"] },
  },
  {
    name: "probes a model with a half-open breaker, and closes it when the model serves",
    upstream: { alpha: [fails, fails, fails, hello] },
    before: { times: 2, breaker: "half_open" },
    expected: { answer: {}, breaker: "closed" },
  },
  {
    name: "opens the breaker again when its probe fails, without a second attempt",
    upstream: { alpha: [fails] },
    before: { times: 2, breaker: "half_open" },
    expected: { failure: "upstream_unavailable", attempts: ["alpha upstream_unavailable 503"], breaker: "open" },
  },
  {
    name: "keeps the breaker open for the retry-after of a rate limit",
    upstream: { alpha: [refuses(429, "Wait.", { "retry-after": "40" })] },
    before: { times: 1, breaker: "open" },
    expected: { failure: "upstream_rate_limited", retryAfterS: 40, attempts: ["alpha skipped"] },
  },
  {
    name: "keeps the breaker closed for a model that rejects requests, which may be the requests' fault",
    upstream: { alpha: [refuses(400)] },
    before: { times: 4, breaker: "closed" },
    expected: { failure: "upstream_rejected", attempts: ["alpha upstream_rejected 400"], breaker: "closed" },
  },
  {
    name: "keeps the breaker closed for account errors that are only in the message, which a request may cause too",
    upstream: { alpha: [refuses(400, "Your credit balance is too low.")] },
    before: { times: 4, breaker: "closed" },
    expected: { failure: "upstream_refused_us", attempts: ["alpha upstream_refused_us 400"], breaker: "closed" },
  },
  {
    name: "keeps the breaker closed for tool calls without a name, which a request may cause",
    upstream: { alpha: [says("", { call: { name: "", arguments: "{}" } })] },
    before: { times: 3, breaker: "closed" },
    expected: {
      failure: "upstream_protocol",
      attempts: ["alpha upstream_protocol 200", "alpha upstream_protocol 200"],
      breaker: "closed",
    },
  },
  {
    name: "opens the breaker of a model that refuses the gateway's credential",
    upstream: { alpha: [refuses(401)] },
    before: { times: 3, breaker: "open" },
    expected: { failure: "upstream_unavailable", attempts: ["alpha skipped"] },
  },
];
