import { says } from "../../support/scripted-upstream.ts";
import type { Scenario } from "./scenario.ts";

/** Requests that exceed a limit of their key. */
export const LIMITING: readonly Scenario[] = [
  {
    name: "refuses the second request of a key that may make one a minute, with a retry-after",
    key: "one request",
    upstream: { alpha: [says("Hello.")] },
    before: { times: 1 },
    expected: { failure: "rate_limited", refused: true, message: /1 request per minute/ },
  },
  {
    name: "refuses the second request of a key whose tokens of the minute the first one took",
    key: "one token",
    upstream: { alpha: [says("Hello.")] },
    before: { times: 1 },
    expected: { failure: "rate_limited", message: /1 token per minute/ },
  },
  {
    name: "refuses a request that may cost more than the budget of its key, and says not to retry",
    key: "no money",
    expected: { failure: "budget_spent", retryAfterS: 60, message: /monthly budget/ },
  },
];
