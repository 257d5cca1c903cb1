import { refuses, says } from "../../support/scripted-upstream.ts";
import type { Scenario } from "./scenario.ts";

const hello = says("Hello.");
const broken = refuses(503);
/** Two requests are three failures in a row: the second one is not retried any more. */
const tired = { times: 2, breaker: "open" } as const;

/** Models that rest after failures. */
export const RESTING: readonly Scenario[] = [
  {
    name: "does not call a model that rests after three failures in a row, and says for how long",
    upstream: { alpha: [broken] },
    before: tired,
    expected: { failure: "upstream_unavailable", retryAfterS: 1, attempts: ["alpha skipped"], breaker: "open" },
  },
  {
    name: "skips a primary that rests and falls back",
    ask: { fallbackModels: ["beta"] },
    upstream: { alpha: [broken], beta: [hello] },
    before: tired,
    expected: { answer: { model: "beta" }, attempts: ["alpha skipped", "beta served 200"] },
  },
  {
    name: "probes a model that has rested, and uses it again when it serves",
    upstream: { alpha: [broken, broken, broken, hello] },
    before: { times: 2, breaker: "half_open" },
    expected: { answer: {}, breaker: "closed" },
  },
  {
    name: "lets a model rest again when its probe fails, without a second attempt",
    upstream: { alpha: [broken] },
    before: { times: 2, breaker: "half_open" },
    expected: { failure: "upstream_unavailable", attempts: ["alpha upstream_unavailable 503"], breaker: "open" },
  },
  {
    name: "lets a model rest for as long as its rate limit says",
    upstream: { alpha: [refuses(429, "Wait.", { "retry-after": "40" })] },
    before: { times: 1, breaker: "open" },
    expected: { failure: "upstream_rate_limited", retryAfterS: 40, attempts: ["alpha skipped"] },
  },
  {
    name: "goes on calling a model that rejects requests, for it is well",
    upstream: { alpha: [refuses(400)] },
    before: { times: 4, breaker: "closed" },
    expected: { failure: "upstream_rejected", attempts: ["alpha upstream_rejected 400"], breaker: "closed" },
  },
  {
    name: "goes on calling a model that only says in words that the account is at fault, for a request may say them too",
    upstream: { alpha: [refuses(400, "Your credit balance is too low.")] },
    before: { times: 4, breaker: "closed" },
    expected: { failure: "upstream_refused_us", attempts: ["alpha upstream_refused_us 400"], breaker: "closed" },
  },
  {
    name: "goes on calling a model that makes calls without a name, for the request may lead it there",
    upstream: { alpha: [says("", { call: { name: "", arguments: "{}" } })] },
    before: { times: 3, breaker: "closed" },
    expected: {
      failure: "upstream_protocol",
      attempts: ["alpha upstream_protocol 200", "alpha upstream_protocol 200"],
      breaker: "closed",
    },
  },
  {
    name: "lets a model rest that refuses the gateway's own credential",
    upstream: { alpha: [refuses(401)] },
    before: { times: 3, breaker: "open" },
    expected: { failure: "upstream_unavailable", attempts: ["alpha skipped"] },
  },
];
